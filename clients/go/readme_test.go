package cuzk_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/grpc/codes"

	cuzk "github.com/cuzk/cuzk/clients/go"
	"github.com/cuzk/cuzk/clients/go/cuzktest"
)

// The program with the daemon for tests: its first reply is repeated, its second is an error.
func TestReadmeProgrammed(t *testing.T) {
	server := cuzktest.New(t)
	server.Then(cuzktest.Refuse(codes.Unavailable, "it restarts"), cuzktest.Fail("no parameters"))
	client, err := cuzk.Dial(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Prove(context.Background(), request())
	var failed *cuzk.ProvingFailedError
	if !errors.As(err, &failed) || failed.Reason != "no parameters" {
		t.Fatal(err)
	}
}

// The program that needs no daemon is the one above. programs_test.go runs the others.
func TestReadmeShowsTheProgramAbove(t *testing.T) {
	withoutSpace := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), "")
	}
	here := withoutSpace(text(t, "readme_test.go"))
	shown := programs(t)[2]
	if !strings.Contains(here, withoutSpace(shown)) {
		t.Errorf("README.md shows another program:\n%s", shown)
	}
}

// The package's own page shows the first program of README.md.
func TestThePackageShowsTheFirstProgram(t *testing.T) {
	page := strings.ReplaceAll(text(t, "doc.go"), "//\t", "")
	if !strings.Contains(page, programs(t)[0]) {
		t.Errorf("doc.go does not show:\n%s", programs(t)[0])
	}
}

// programs returns the programs that README.md shows.
func programs(t *testing.T) []string {
	t.Helper()
	blocks := strings.Split(text(t, "README.md"), "\n```go\n")[1:]
	if len(blocks) != 3 {
		t.Fatalf("README.md shows %d programs, and 3 are tested", len(blocks))
	}
	for at, block := range blocks {
		blocks[at], _, _ = strings.Cut(block, "\n```")
	}
	return blocks
}

func text(t *testing.T, name string) string {
	t.Helper()
	bytes, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}
