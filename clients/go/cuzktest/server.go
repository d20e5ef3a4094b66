// Package cuzktest has a daemon for tests. It speaks the protocol and proves nothing.
package cuzktest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

const (
	messageBytesMax = 256 << 20
	// Clients ask once a minute whether the connection is alive.
	pingsApart = 10 * time.Second
)

// Reply answers a request. The context is that of the call that waits.
type Reply func(context.Context, *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error)

// Server is a daemon on a unix socket. Without replies every request is proved at once.
type Server struct {
	folder string

	mu        sync.Mutex
	grpc      *grpc.Server
	health    *health.Server
	isServing bool
	replies   []Reply
	status    *cuzkv1.GetStatusResponse
	requests  []*cuzkv1.SubmitProofRequest
	jobs      map[string]*cuzkv1.SubmitProofRequest
	cancelled []string
}

// New starts a daemon. It stops at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	// The folder of a test can be too long for the path of a socket.
	folder, err := os.MkdirTemp("", "cuzktest")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		folder:    folder,
		isServing: true,
		status:    &cuzkv1.GetStatusResponse{},
		jobs:      map[string]*cuzkv1.SubmitProofRequest{},
	}
	t.Cleanup(func() {
		s.Stop()
		os.RemoveAll(folder)
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Address returns the address for cuzk.Dial.
func (s *Server) Address() string {
	return "unix://" + filepath.Join(s.folder, "cuzk.sock")
}

// Start begins to listen, for the first time or after Stop.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A server that runs keeps its socket.
	if s.grpc != nil {
		return errors.New("cuzktest: the server runs already")
	}
	path := filepath.Join(s.folder, "cuzk.sock")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(messageBytesMax),
		grpc.MaxSendMsgSize(messageBytesMax),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsApart}),
	)
	s.health = health.NewServer()
	s.setHealth()
	cuzkv1.RegisterProvingEngineServer(s.grpc, &service{server: s})
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	go s.grpc.Serve(listener)
	return nil
}

// Stop cuts all connections, as a daemon does that is killed.
func (s *Server) Stop() {
	s.mu.Lock()
	running := s.grpc
	s.grpc = nil
	s.mu.Unlock()
	if running != nil {
		running.Stop()
	}
}

// SetServing changes what the health service says.
func (s *Server) SetServing(isServing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isServing = isServing
	s.setHealth()
}

func (s *Server) setHealth() {
	state := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if s.isServing {
		state = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
	s.health.SetServingStatus(cuzkv1.ProvingEngine_ServiceDesc.ServiceName, state)
}

// SetStatus changes the answer of GetStatus.
func (s *Server) SetStatus(status *cuzkv1.GetStatusResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = proto.Clone(status).(*cuzkv1.GetStatusResponse)
}

// Then adds replies for the next calls of Prove and AwaitProof, in order. After them every
// request is proved.
func (s *Server) Then(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Requests returns the requests of all calls of SubmitProof and Prove, in order.
func (s *Server) Requests() []*cuzkv1.SubmitProofRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*cuzkv1.SubmitProofRequest(nil), s.requests...)
}

// Cancelled returns the names of the jobs that calls of CancelProof named, in order.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.cancelled...)
}

// Complete replies with a proof.
func Complete(bytes []byte) Reply {
	return func(_ context.Context, request *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
		return &cuzkv1.AwaitProofResponse{
			JobId:   JobID(request),
			Status:  cuzkv1.AwaitProofResponse_COMPLETED,
			Proof:   bytes,
			TotalMs: 1,
		}, nil
	}
}

// Fail replies that the request could not be proved.
func Fail(reason string) Reply { return end(cuzkv1.AwaitProofResponse_FAILED, reason) }

// Cancel replies that the job was cancelled.
func Cancel() Reply { return end(cuzkv1.AwaitProofResponse_CANCELLED, "cancelled") }

// Timeout replies that the job goes on.
func Timeout() Reply { return end(cuzkv1.AwaitProofResponse_TIMEOUT, "it goes on") }

// Unknown replies that there is no such job.
func Unknown() Reply { return end(cuzkv1.AwaitProofResponse_UNKNOWN, "there is no such job") }

func end(status cuzkv1.AwaitProofResponse_Status, reason string) Reply {
	return func(_ context.Context, request *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
		return &cuzkv1.AwaitProofResponse{JobId: JobID(request), Status: status, ErrorMessage: reason}, nil
	}
}

// Refuse ends the call with a code, for example codes.ResourceExhausted.
func Refuse(code codes.Code, message string) Reply {
	return func(context.Context, *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
		return nil, status.Error(code, message)
	}
}

// Hang waits until the client ends the call.
func Hang() Reply {
	return func(ctx context.Context, _ *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// Proof returns the proof of a request to which there was no other reply: 192 bytes, which
// follow from the request.
func Proof(request *cuzkv1.SubmitProofRequest) []byte {
	sum := digest(request)
	proof := make([]byte, 0, 192)
	for len(proof) < cap(proof) {
		proof = append(proof, sum[:]...)
	}
	return proof
}

// JobID returns the name of the job of a request: its id and a digest of its input.
func JobID(request *cuzkv1.SubmitProofRequest) string {
	sum := digest(request)
	return fmt.Sprintf("%s-%x", request.GetRequestId(), sum[:8])
}

func digest(request *cuzkv1.SubmitProofRequest) [sha256.Size]byte {
	// It fails for text that is not UTF-8, which gRPC does not let through.
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	return sha256.Sum256(encoded)
}
