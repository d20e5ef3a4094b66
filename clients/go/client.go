package cuzk

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

// Client calls one daemon. Its methods may be called from any number of goroutines.
type Client struct {
	address    string
	connection *grpc.ClientConn
	engine     cuzkv1.ProvingEngineClient
	health     grpc_health_v1.HealthClient
	firstPause time.Duration
	maxPause   time.Duration
}

func newClient(address string, connection *grpc.ClientConn, o *options) *Client {
	return &Client{
		address:    address,
		connection: connection,
		engine:     cuzkv1.NewProvingEngineClient(connection),
		health:     grpc_health_v1.NewHealthClient(connection),
		firstPause: o.firstPause,
		maxPause:   o.maxPause,
	}
}

// Close ends the connection. Calls that wait end with an error. Their jobs go on.
func (c *Client) Close() error { return c.connection.Close() }

// Engine returns the generated client, for calls and fields that this package leaves out.
func (c *Client) Engine() cuzkv1.ProvingEngineClient { return c.engine }

// Connection returns the connection, for other services of the daemon such as operatorv1.
func (c *Client) Connection() *grpc.ClientConn { return c.connection }

// Proof is a verified proof and the times of its job. Those of stages are sums over
// partitions.
type Proof struct {
	JobID string
	// Bytes are the proofs of all partitions in order, 192 bytes each. Those of a
	// non-interactive PoRep are aggregated afterwards for the chain.
	Bytes     []byte
	QueueWait time.Duration
	SRSLoad   time.Duration
	Synthesis time.Duration
	// Compute is the time of transforms and multi-scalar multiplications, on a GPU or on
	// the CPU.
	Compute time.Duration
	// Total is the time from accepting the job to its end.
	Total time.Duration
}

// Submit queues a proof and returns the name of its job. It does not repeat the call; after
// an [UnavailableError] the caller may, and gets the same job.
func (c *Client) Submit(ctx context.Context, request *cuzkv1.SubmitProofRequest) (jobID string, err error) {
	if err := checkSize(request); err != nil {
		return "", err
	}
	reply, err := c.engine.SubmitProof(ctx, request)
	if err != nil {
		return "", c.typed(err)
	}
	return reply.GetJobId(), nil
}

// Await waits for the end of a job until ctx ends. It calls again if the daemon goes away
// meanwhile: the daemon takes up its jobs when it starts. The result of an
// [UnknownJobError] is final.
func (c *Client) Await(ctx context.Context, jobID string) (Proof, error) {
	return c.repeat(ctx, func(ctx context.Context) (*cuzkv1.AwaitProofResponse, error) {
		return c.engine.AwaitProof(ctx, &cuzkv1.AwaitProofRequest{JobId: jobID})
	})
}

// Cancel ends a job, for every client that waits for it. It returns true if the job had not
// ended.
func (c *Client) Cancel(ctx context.Context, jobID string) (wasRunning bool, err error) {
	reply, err := c.engine.CancelProof(ctx, &cuzkv1.CancelProofRequest{JobId: jobID})
	return reply.GetWasRunning(), c.typed(err)
}

// Status returns the state of the daemon.
func (c *Client) Status(ctx context.Context) (*cuzkv1.GetStatusResponse, error) {
	reply, err := c.engine.GetStatus(ctx, &cuzkv1.GetStatusRequest{})
	return reply, c.typed(err)
}

// Health returns nil if the daemon takes requests, and otherwise an [UnavailableError] or
// an [UnauthenticatedError]. A daemon without a health service is asked for its status.
func (c *Client) Health(ctx context.Context) error {
	reply, err := c.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		_, err := c.Status(ctx)
		return err
	case err != nil:
		return c.typed(err)
	case reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		err := status.Errorf(codes.Unavailable, "the daemon reports %s", reply.GetStatus())
		return &UnavailableError{Address: c.address, Err: err}
	default:
		return nil
	}
}

// checkSize refuses a message that no daemon would take. gRPC would refuse it too, with the
// code of a daemon that has no room.
func checkSize(request *cuzkv1.SubmitProofRequest) error {
	// The message of Prove has the request in a field: a tag and a length more.
	const wrapping = 16
	if proto.Size(request) <= MessageBytesMax-wrapping {
		return nil
	}
	field := "vanilla_proofs"
	if len(request.GetVanillaProof()) > 0 {
		field = "vanilla_proof"
	}
	return &InvalidInputError{Field: field, Message: "the request has more than 256 MiB; prove it with `cuzk prove`"}
}
