package cuzktest

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

// service answers the calls of the protocol.
type service struct {
	cuzkv1.UnimplementedProvingEngineServer
	server *Server
}

// add keeps a request and returns the name of its job.
func (s *Server) add(request *cuzkv1.SubmitProofRequest) (string, error) {
	if request == nil {
		return "", status.Error(codes.InvalidArgument, "submit: missing; send the request in this field")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := JobID(request)
	s.requests = append(s.requests, request)
	s.jobs[id] = request
	return id, nil
}

// next returns the reply of the next call.
func (s *Server) next() Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) == 0 {
		return func(ctx context.Context, request *cuzkv1.SubmitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
			return Complete(Proof(request))(ctx, request)
		}
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}

func (s *service) SubmitProof(
	_ context.Context,
	request *cuzkv1.SubmitProofRequest,
) (*cuzkv1.SubmitProofResponse, error) {
	id, err := s.server.add(request)
	return &cuzkv1.SubmitProofResponse{JobId: id}, err
}

func (s *service) AwaitProof(
	ctx context.Context,
	asked *cuzkv1.AwaitProofRequest,
) (*cuzkv1.AwaitProofResponse, error) {
	s.server.mu.Lock()
	request := s.server.jobs[asked.GetJobId()]
	s.server.mu.Unlock()
	if request == nil {
		reply, err := Unknown()(ctx, request)
		reply.JobId = asked.GetJobId()
		return reply, err
	}
	return s.server.next()(ctx, request)
}

func (s *service) Prove(
	ctx context.Context,
	asked *cuzkv1.ProveRequest,
) (*cuzkv1.ProveResponse, error) {
	if _, err := s.server.add(asked.GetSubmit()); err != nil {
		return nil, err
	}
	result, err := s.server.next()(ctx, asked.GetSubmit())
	if err != nil {
		return nil, err
	}
	return &cuzkv1.ProveResponse{Result: result}, nil
}

func (s *service) CancelProof(
	_ context.Context,
	asked *cuzkv1.CancelProofRequest,
) (*cuzkv1.CancelProofResponse, error) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.cancelled = append(s.server.cancelled, asked.GetJobId())
	_, isKnown := s.server.jobs[asked.GetJobId()]
	return &cuzkv1.CancelProofResponse{WasRunning: isKnown}, nil
}

func (s *service) GetStatus(
	context.Context,
	*cuzkv1.GetStatusRequest,
) (*cuzkv1.GetStatusResponse, error) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.status, nil
}
