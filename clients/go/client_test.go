package cuzk_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	cuzk "github.com/cuzk/cuzk/clients/go"
	"github.com/cuzk/cuzk/clients/go/cuzktest"
	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

func dial(t *testing.T, server *cuzktest.Server, options ...cuzk.Option) *cuzk.Client {
	t.Helper()
	options = append([]cuzk.Option{cuzk.WithPauses(time.Millisecond, 8*time.Millisecond)}, options...)
	client, err := cuzk.Dial(server.Address(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func request() *cuzkv1.SubmitProofRequest {
	return &cuzkv1.SubmitProofRequest{
		RequestId:    "porep-1001-7",
		ProofKind:    cuzkv1.ProofKind_POREP_SEAL_COMMIT,
		VanillaProof: []byte("{}"),
	}
}

func TestProveReturnsTheProof(t *testing.T) {
	server := cuzktest.New(t)
	proof, err := dial(t, server).Prove(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(proof.Bytes, cuzktest.Proof(request())) || proof.Total != time.Millisecond {
		t.Errorf("got %+v", proof)
	}
}

func TestProveCallsAgainWithTheSameRequest(t *testing.T) {
	server := cuzktest.New(t)
	server.Then(
		cuzktest.Refuse(codes.Unavailable, "the daemon stops"),
		cuzktest.Refuse(codes.ResourceExhausted, "no room"),
		cuzktest.Refuse(codes.Canceled, "the stream was closed"),
		cuzktest.Timeout(),
	)
	if _, err := dial(t, server).Prove(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	requests := server.Requests()
	if len(requests) != 5 {
		t.Errorf("%d calls", len(requests))
	}
	for _, sent := range requests {
		if !proto.Equal(sent, request()) {
			t.Errorf("sent %v", sent)
		}
	}
}

func TestProveOutlivesARestart(t *testing.T) {
	server := cuzktest.New(t)
	isCalled := make(chan struct{})
	server.Then(func(ctx context.Context, _ *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
		close(isCalled)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	restarted := make(chan error, 1)
	go func() {
		<-isCalled
		server.Stop()
		restarted <- server.Start()
	}()
	if _, err := dial(t, server).Prove(t.Context(), request()); err != nil {
		t.Error(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if sent := len(server.Requests()); sent < 2 {
		t.Errorf("%d calls", sent)
	}
}

func TestEndsThatAreFinal(t *testing.T) {
	for name, c := range map[string]struct {
		reply cuzktest.Reply
		is    func(error) bool
	}{
		"failed":   {cuzktest.Fail("no parameters"), isFailed("no parameters")},
		"ended":    {cuzktest.Cancel(), is[*cuzk.CancelledError]},
		"unknown":  {cuzktest.Unknown(), is[*cuzk.UnknownJobError]},
		"refused":  {cuzktest.Refuse(codes.Unauthenticated, "no token"), is[*cuzk.UnauthenticatedError]},
		"no files": {cuzktest.Refuse(codes.FailedPrecondition, "no parameters"), is[*cuzk.NotReadyError]},
		"invalid":  {cuzktest.Refuse(codes.InvalidArgument, "randomness: 31 bytes; send 32"), isInvalid("randomness", "31 bytes; send 32")},
		"no field": {cuzktest.Refuse(codes.InvalidArgument, "the request is bad: very"), isInvalid("", "the request is bad: very")},
		"large":    {cuzktest.Refuse(codes.OutOfRange, "too large"), isInvalid("", "too large")},
	} {
		t.Run(name, func(t *testing.T) {
			server := cuzktest.New(t)
			server.Then(c.reply)
			_, err := dial(t, server).Prove(t.Context(), request())
			if !c.is(err) {
				t.Errorf("got %T: %v", err, err)
			}
			if calls := len(server.Requests()); calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

func is[T error](err error) bool {
	var found T
	return errors.As(err, &found)
}

func isFailed(reason string) func(error) bool {
	return func(err error) bool {
		var failed *cuzk.ProvingFailedError
		return errors.As(err, &failed) && failed.Reason == reason
	}
}

func isInvalid(field, message string) func(error) bool {
	return func(err error) bool {
		var invalid *cuzk.InvalidInputError
		return errors.As(err, &invalid) && invalid.Field == field && invalid.Message == message
	}
}

func TestTheContextEndsTheRepetitions(t *testing.T) {
	server := cuzktest.New(t)
	client := dial(t, server)
	server.Stop()
	// Long enough for one call at least, also where other programs have the cores.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := client.Prove(ctx, request())
	if !is[*cuzk.UnavailableError](err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %T: %v", err, err)
	}
}

func TestTheContextEndsAWait(t *testing.T) {
	server := cuzktest.New(t)
	server.Then(cuzktest.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := dial(t, server).Prove(ctx, request())
	if is[*cuzk.UnavailableError](err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %T: %v", err, err)
	}
}

func TestSubmitAwaitCancel(t *testing.T) {
	server := cuzktest.New(t)
	client := dial(t, server)
	id, err := client.Submit(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	server.Then(cuzktest.Timeout())
	proof, err := client.Await(t.Context(), id)
	if err != nil || proof.JobID != id {
		t.Errorf("got %v, %v", proof, err)
	}
	_, err = client.Await(t.Context(), "nothing")
	var unknown *cuzk.UnknownJobError
	if !errors.As(err, &unknown) || unknown.JobID != "nothing" {
		t.Errorf("got %v", err)
	}
	if wasRunning, err := client.Cancel(t.Context(), id); !wasRunning || err != nil {
		t.Errorf("got %v, %v", wasRunning, err)
	}
	if wasRunning, err := client.Cancel(t.Context(), "nothing"); wasRunning || err != nil {
		t.Errorf("got %v, %v", wasRunning, err)
	}
}

func TestHealthAndStatus(t *testing.T) {
	server := cuzktest.New(t)
	server.SetStatus(&cuzkv1.GetStatusResponse{UptimeSeconds: 7})
	client := dial(t, server)
	if err := client.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if state, err := client.Status(t.Context()); err != nil || state.GetUptimeSeconds() != 7 {
		t.Errorf("got %v, %v", state, err)
	}
	if err := server.Start(); err == nil {
		t.Error("a server that runs was started again")
	}
	if err := client.Health(t.Context()); err != nil {
		t.Error(err)
	}
	server.SetServing(false)
	if err := client.Health(t.Context()); !is[*cuzk.UnavailableError](err) {
		t.Errorf("got %v", err)
	}
	server.Stop()
	if err := client.Health(t.Context()); !is[*cuzk.UnavailableError](err) {
		t.Errorf("got %v", err)
	}
}

func TestALargeRequestGoesThroughAndATooLargeOneDoesNot(t *testing.T) {
	server := cuzktest.New(t)
	client := dial(t, server)
	large := request()
	large.VanillaProof = make([]byte, 60<<20)
	if _, err := client.Prove(t.Context(), large); err != nil {
		t.Error(err)
	}
	large.VanillaProof = make([]byte, cuzk.MessageBytesMax)
	_, err := client.Prove(t.Context(), large)
	if !isInvalid("vanilla_proof", "the request has more than 256 MiB; prove it with `cuzk prove`")(err) {
		t.Errorf("got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{
		"unix:///run/cuzk.sock", "unix:/run/cuzk.sock", "tcp://127.0.0.1:9820", "prover:9820", "[::1]:9820",
	} {
		client, err := cuzk.Dial(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		client.Close()
	}
	for _, bad := range []string{"", "prover", "unix://relative", "tcp://", ":9820", "http://prover:9820", "prover:"} {
		if _, err := cuzk.Dial(bad); err == nil || !strings.Contains(err.Error(), "write unix:///PATH") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := cuzk.Dial("prover:9820", cuzk.WithToken("secret")); err == nil ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("a token without TLS: %v", err)
	}
}

func TestBundledRequestsAreRead(t *testing.T) {
	for file, kind := range map[string]cuzkv1.ProofKind{
		"porep.json":        cuzkv1.ProofKind_POREP_SEAL_COMMIT,
		"porep-c1.json":     cuzkv1.ProofKind_POREP_SEAL_COMMIT,
		"snap-deals.json":   cuzkv1.ProofKind_SNAP_DEALS_UPDATE,
		"window-post.json":  cuzkv1.ProofKind_WINDOW_POST_PARTITION,
		"winning-post.json": cuzkv1.ProofKind_WINNING_POST,
	} {
		read, err := cuzk.ReadRequest(filepath.Join("../../data/sector-2kib", file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if read.GetProofKind() != kind || read.GetRequestId() == "" {
			t.Errorf("%s: %v %q", file, read.GetProofKind(), read.GetRequestId())
		}
	}
	whole, err := cuzk.ReadRequest("../../data/sector-2kib/porep.json")
	if err != nil {
		t.Fatal(err)
	}
	// The wrapper that the request has inside is a request file of its own.
	wrapper, err := cuzk.ParseRequest(whole.GetVanillaProof())
	if err != nil {
		t.Fatal(err)
	}
	if wrapper.GetRegisteredProof() != 5 || wrapper.GetSectorNumber() != whole.GetSectorNumber() {
		t.Errorf("got %d, %d", wrapper.GetRegisteredProof(), wrapper.GetSectorNumber())
	}
	for name, number := range map[string]uint64{
		"StackedDrg2KiBV1":                             0,
		"StackedDrg64GiBV1_1":                          9,
		"StackedDrg32GiBV1_1_Feat_SyntheticPoRep":      13,
		"StackedDrg2KiBV1_2_Feat_NonInteractivePoRep":  15,
		"StackedDrg64GiBV1_2_Feat_NonInteractivePoRep": 19,
	} {
		output, err := cuzk.ParseRequest([]byte(`{"replica_id":[],"registered_proof":"` + name + `"}`))
		if err != nil || output.GetRegisteredProof() != number {
			t.Errorf("%s: got %d, %v", name, output.GetRegisteredProof(), err)
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"proof_kind":"X"}`, `{"proof_kind":1,"miner":2}`, `{"replica_id":1}`, `{"Phase1Out":1}`} {
		if _, err := cuzk.ParseRequest([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
