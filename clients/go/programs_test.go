package cuzk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs and commands of the documents, against the real daemon. Each is built as it is shown
// and run in a process of its own. Only sockets, ports and folders are others.

// firstProgram writes the proof of README.md's first program into a file.
const firstProgram = `package main

import (
	"context"
	"log"
	"os"

	cuzk "github.com/cuzk/cuzk/clients/go"
)

func main() {
	ctx := context.Background()
%s
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("porep.proof", proof.Bytes, 0o644); err != nil {
		log.Fatal(err)
	}
}
`

// protectedProgram calls the daemon with each client of README.md's second program, and prints the
// types of the errors.
const protectedProgram = `package main

import (
	"context"
	"fmt"
	"os"

	cuzk "github.com/cuzk/cuzk/clients/go"
)

func main() {
	token := os.Getenv("TOKEN")
%s
	call(client, err)
}

func call(client *cuzk.Client, err error) {
	if err == nil {
		err = client.Health(context.Background())
	}
	fmt.Printf("%%T\n", err)
}
`

// The daemon of the documents. The request that they name is that of a WinningPoSt.
func documented(t *testing.T) *daemon {
	t.Helper()
	d := newDaemon(t)
	d.run(t, "params", "generate", "--kind", "winning-post", "--sector-size", "2KiB")
	request := text(t, "../../data/sector-2kib/winning-post.json")
	if err := os.WriteFile(filepath.Join(d.folder, "porep.json"), []byte(request), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

// build builds a program against this module, and returns the path of the program.
func (d *daemon) build(t *testing.T, name, source string) string {
	t.Helper()
	file := filepath.Join(d.folder, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(d.folder, name)
	if output, err := exec.Command("go", "build", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, source)
	}
	return program
}

// output runs a command in the folder of the daemon and returns what it prints.
func (d *daemon) output(t *testing.T, command *exec.Cmd, variables ...string) string {
	t.Helper()
	command.Env = append(os.Environ(), variables...)
	output, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", command, err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// placed replaces a text that must be there.
func placed(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%s is not in:\n%s", from, text)
	}
	return strings.ReplaceAll(text, from, to)
}

func TestReadmeProgramAndExampleProve(t *testing.T) {
	d := documented(t)
	d.start(t, d.dial(t))
	example := placed(t, text(t, "example_test.go"), "package cuzk_test", "package main")
	for name, source := range map[string]string{
		"first":   fmt.Sprintf(firstProgram, programs(t)[0]),
		"example": placed(t, example, "func Example()", "func main()"),
	} {
		t.Run(name, func(t *testing.T) {
			source := placed(t, source, "unix:///run/cuzk/cuzk.sock", d.address)
			command := exec.Command(d.build(t, name, source))
			command.Dir = d.folder
			d.output(t, command)
			proof := filepath.Join(d.folder, "porep.proof")
			d.run(t, "verify", "--request", filepath.Join(d.folder, "porep.json"), "--proof", proof)
			if err := os.Remove(proof); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Three documents show the whole program. Their commands stand in the top folder, and one is
// followed by the command that verifies the proof.
func TestWholeProgramProves(t *testing.T) {
	d := documented(t)
	d.start(t, d.dial(t))
	proof := filepath.Join(d.folder, "winning.bin")
	for _, page := range []string{"README.md", "docs/installing.md", "clients/go/README.md"} {
		shown := 0
		before := ""
		for line := range strings.Lines(text(t, "../../"+page)) {
			if strings.Contains(line, "go run ./examples/prove ") {
				shown++
				if page == "clients/go/README.md" {
					line = placed(t, before, "\n", " && ") + placed(t, line, "winning.proof", proof)
				} else {
					line = placed(t, line, "/tmp/winning.bin", proof)
				}
				command := exec.Command("sh", "-c", line)
				command.Dir = "../.."
				d.output(t, command, "CUZK_ADDRESS="+d.address)
				d.run(t, "verify", "--request", "../../data/sector-2kib/winning-post.json", "--proof", proof)
				if err := os.Remove(proof); err != nil {
					t.Fatal(err)
				}
			}
			before = line
		}
		if shown != 1 {
			t.Errorf("%s shows the whole program %d times", page, shown)
		}
	}
}

func TestReadmeProtectedProgram(t *testing.T) {
	d := documented(t)
	servers, clients := newAuthority(t), newAuthority(t)
	servers.write(t, filepath.Join(d.folder, "server-ca.pem"))
	clients.write(t, filepath.Join(d.folder, "clients-ca.pem"))
	servers.sign(t, d.folder, "server")
	clients.sign(t, d.folder, "client")
	const token = "0123456789abcdef"
	if err := os.WriteFile(filepath.Join(d.folder, "tokens"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// docs/daemon.md shows the configuration.
	_, config, _ := strings.Cut(text(t, "../../docs/daemon.md"), "```toml\n[server]\n")
	config, _, _ = strings.Cut(config, "```")
	config = withoutMultiples + "[server]\n" + placed(t, config, "/etc/cuzk", d.folder)
	if err := os.WriteFile(d.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d.options = []string{"--listen", "tcp://127.0.0.1:0"}
	d.start(t, d.dial(t))

	source := placed(t, programs(t)[1], "prover:9820", d.log.after(t, "serves clients on tcp://"))
	source = placed(t, source, "// or:", "\n\tcall(client, err)")
	program := d.build(t, "protected", fmt.Sprintf(protectedProgram, source))
	run := func(token string) string {
		command := exec.Command(program)
		command.Dir = d.folder
		return d.output(t, command, "TOKEN="+token)
	}
	const served = "<nil>\n"
	if got := run(token); got != served+served {
		t.Errorf("got %s", got)
	}
	if got := run("fedcba9876543210"); got != served+"*cuzk.UnauthenticatedError\n" {
		t.Errorf("with a wrong token: got %s", got)
	}
	servers.sign(t, d.folder, "client")
	if got := run(token); got != "*cuzk.UnavailableError\n"+served {
		t.Errorf("with a certificate of another authority: got %s", got)
	}
	clients.sign(t, d.folder, "client")
	clients.write(t, filepath.Join(d.folder, "server-ca.pem"))
	if got := run(token); got != strings.Repeat("*cuzk.UnavailableError\n", 2) {
		t.Errorf("with another authority of the server: got %s", got)
	}
}
