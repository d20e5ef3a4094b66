package cuzk_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cuzk "github.com/cuzk/cuzk/clients/go"
	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

// daemonWait is long, because a loaded machine is slow.
const daemonWait = 10 * time.Minute

// daemon is the real program, which CUZK_BINARY names. CUZK_TEST_PARAMETERS names a folder
// for its parameters that is kept; without it they are made for each run.
type daemon struct {
	binary     string
	parameters string
	folder     string
	address    string
	// options are more words for `cuzk serve`.
	options []string
	process *exec.Cmd
	log     daemonLog
	// ended gets the error of the process when it ends.
	ended chan error
}

// daemonLog is what a daemon writes to its errors. It goes to those of the test, too.
type daemonLog struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *daemonLog) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text.Write(line)
	return os.Stderr.Write(line)
}

// after returns the word after a text that the daemon has written.
func (l *daemonLog) after(t *testing.T, text string) string {
	t.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, rest, _ := strings.Cut(l.text.String(), text)
	words := strings.Fields(rest)
	if len(words) == 0 {
		t.Fatalf("the daemon did not write %q", text)
	}
	return words[0]
}

// The daemon makes no multiples, since other tests share its parameters and expect none.
const withoutMultiples = "[srs]\nmultiples = []\n"

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	binary := os.Getenv("CUZK_BINARY")
	if binary == "" {
		t.Skip("CUZK_BINARY does not name the program")
	}
	folder, err := os.MkdirTemp("", "cuzk")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{
		binary:     binary,
		parameters: os.Getenv("CUZK_TEST_PARAMETERS"),
		folder:     folder,
		address:    "unix://" + filepath.Join(folder, "cuzk.sock"),
	}
	if d.parameters == "" {
		d.parameters = filepath.Join(folder, "parameters")
	}
	if err := os.MkdirAll(d.parameters, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.config(), []byte(withoutMultiples), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.stop(t)
		os.RemoveAll(folder)
	})
	return d
}

// config returns the path of the daemon's configuration.
func (d *daemon) config() string {
	return filepath.Join(d.folder, "cuzk.toml")
}

// run runs another command of the program.
func (d *daemon) run(t *testing.T, arguments ...string) {
	t.Helper()
	if output, err := d.command(arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, output)
	}
}

func (d *daemon) command(arguments ...string) *exec.Cmd {
	command := exec.Command(d.binary, arguments...)
	command.Env = append(os.Environ(),
		"FIL_PROOFS_PARAMETER_CACHE="+d.parameters,
		"STATE_DIRECTORY="+filepath.Join(d.folder, "state"),
	)
	return command
}

func (d *daemon) start(t *testing.T, client *cuzk.Client) {
	t.Helper()
	serve := []string{"serve", "--config", d.config(), "--listen", d.address, "--http", "127.0.0.1:0"}
	process := d.command(append(serve, d.options...)...)
	process.Stderr = &d.log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	d.process, d.ended = process, make(chan error, 1)
	go func() { d.ended <- process.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), daemonWait)
	defer cancel()
	for {
		err := client.Health(ctx)
		if err == nil {
			return
		}
		select {
		case end := <-d.ended:
			d.process = nil
			t.Fatalf("the daemon ended at its start: %v", end)
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *daemon) stop(t *testing.T) {
	t.Helper()
	if d.process == nil {
		return
	}
	d.process.Process.Signal(syscall.SIGTERM)
	if err := <-d.ended; err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	d.process = nil
}

func (d *daemon) dial(t *testing.T) *cuzk.Client {
	t.Helper()
	client, err := cuzk.Dial(d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func bundled(t *testing.T, kind string) (path string, request *cuzkv1.SubmitProofRequest) {
	t.Helper()
	path = filepath.Join("../../data/sector-2kib", kind+".json")
	request, err := cuzk.ReadRequest(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, request
}

func TestDaemonProvesTheBundledRequests(t *testing.T) {
	d := newDaemon(t)
	kinds := []string{"winning-post", "window-post"}
	if !testing.Short() {
		kinds = append(kinds, "snap-deals", "porep")
	}
	for _, kind := range kinds {
		d.run(t, "params", "generate", "--kind", kind, "--sector-size", "2KiB")
	}
	client := d.dial(t)
	d.start(t, client)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), daemonWait)
			defer cancel()
			path, request := bundled(t, kind)
			proof, err := client.Prove(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "proof")
			if err := os.WriteFile(out, proof.Bytes, 0o644); err != nil {
				t.Fatal(err)
			}
			d.run(t, "verify", "--request", path, "--proof", out)
		})
	}
}

func TestDaemonKnowsAJobAgain(t *testing.T) {
	d := newDaemon(t)
	d.run(t, "params", "generate", "--kind", "window-post", "--sector-size", "2KiB")
	client := d.dial(t)
	d.start(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), daemonWait)
	defer cancel()
	_, request := bundled(t, "window-post")
	id, err := client.Submit(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	first, err := client.Await(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	// A proof is randomized, so only the same job has the same bytes.
	second, err := client.Prove(ctx, request)
	if err != nil || second.JobID != id || string(second.Bytes) != string(first.Bytes) {
		t.Errorf("another job: %s and %s, %v", id, second.JobID, err)
	}
	if _, err := client.Await(ctx, "nothing"); !is[*cuzk.UnknownJobError](err) {
		t.Errorf("got %v", err)
	}
}

func TestDaemonNamesMissingParameters(t *testing.T) {
	d := newDaemon(t)
	d.parameters = filepath.Join(d.folder, "empty")
	client := d.dial(t)
	d.start(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), daemonWait)
	defer cancel()
	_, request := bundled(t, "window-post")
	_, err := client.Prove(ctx, request)
	var notReady *cuzk.NotReadyError
	if !errors.As(err, &notReady) || !strings.Contains(notReady.Message, d.parameters) {
		t.Errorf("got %v", err)
	}
}

func TestDaemonNamesTheFieldOfABadRequest(t *testing.T) {
	d := newDaemon(t)
	client := d.dial(t)
	d.start(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), daemonWait)
	defer cancel()
	for field, spoil := range map[string]func(*cuzkv1.SubmitProofRequest){
		"proof_kind":       func(r *cuzkv1.SubmitProofRequest) { r.ProofKind = 5 },
		"registered_proof": func(r *cuzkv1.SubmitProofRequest) { r.RegisteredProof = 99 },
		"sector_size":      func(r *cuzkv1.SubmitProofRequest) { r.SectorSize = 4096 },
		"randomness":       func(r *cuzkv1.SubmitProofRequest) { r.Randomness = r.Randomness[:31] },
	} {
		_, request := bundled(t, "window-post")
		spoil(request)
		_, err := client.Prove(ctx, request)
		var invalid *cuzk.InvalidInputError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
