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

// The programs of README.md are in the bodies of these functions. The first two need a daemon and
// certificates, so they are compiled only.

func firstProgram(ctx context.Context) (cuzk.Proof, error) {
	client, err := cuzk.Dial("unix:///run/cuzk/cuzk.sock")
	request, err := cuzk.ReadRequest("porep.json")
	proof, err := client.Prove(ctx, request)
	return proof, err
}

func protectedProgram(token string) (*cuzk.Client, error) {
	client, err := cuzk.Dial("prover:9820",
		cuzk.WithCertificates("server-ca.pem", "client.pem", "client.key")) // or:
	client, err = cuzk.Dial("prover:9820",
		cuzk.WithCertificates("server-ca.pem", "", ""), cuzk.WithToken(token))
	return client, err
}

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

// Each program of README.md is one of the above.
func TestReadmeShowsTheProgramsAbove(t *testing.T) {
	_, _ = firstProgram, protectedProgram
	text := func(name string) string {
		bytes, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes)
	}
	withoutSpace := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), "")
	}
	here := withoutSpace(text("readme_test.go"))
	blocks := strings.Split(text("README.md"), "\n```go\n")[1:]
	if len(blocks) != 3 {
		t.Fatalf("%d programs, and 3 are here", len(blocks))
	}
	for _, block := range blocks {
		program, _, _ := strings.Cut(block, "\n```")
		if !strings.Contains(here, withoutSpace(program)) {
			t.Errorf("README.md shows another program:\n%s", program)
		}
	}
}
