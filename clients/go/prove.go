package cuzk

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

// Prove queues a proof and waits for it until ctx ends. If the daemon is not there, has no
// room, or goes away while it proves, Prove calls again with the same request. The daemon
// then attaches the call to the job that it has. The pauses between the calls grow, and a
// random part of each keeps clients apart.
//
// The end of ctx does not cancel the job; a later call with the same request attaches to
// it. Only a WinningPoSt ends with its call. Use [Client.Cancel] for the others.
//
// A ctx without an end repeats the calls without an end.
func (c *Client) Prove(ctx context.Context, request *cuzkv1.SubmitProofRequest) (Proof, error) {
	if err := checkSize(request); err != nil {
		return Proof{}, err
	}
	return c.repeat(ctx, func(ctx context.Context) (*cuzkv1.AwaitProofResponse, error) {
		reply, err := c.engine.Prove(ctx, &cuzkv1.ProveRequest{Submit: request})
		return reply.GetResult(), err
	})
}

// repeat calls until a job has ended, a repetition does not help, or ctx ends.
func (c *Client) repeat(
	ctx context.Context,
	call func(context.Context) (*cuzkv1.AwaitProofResponse, error),
) (Proof, error) {
	pause := c.firstPause
	var refusal error
	for {
		began := time.Now()
		result, err := call(ctx)
		if err == nil {
			proof, isEnd, err := outcome(result)
			if isEnd {
				return proof, err
			}
		} else if ctx.Err() != nil && refusal != nil {
			// A call that ctx ended says less than the refusal of the call before.
			return Proof{}, c.ended(ctx, refusal)
		} else if ctx.Err() != nil || !isTemporary(err) {
			return Proof{}, c.ended(ctx, err)
		}
		refusal = err
		// A call that held for long was not refused. Its successor need not wait as long
		// as the tenth attempt to reach a daemon.
		if time.Since(began) > c.maxPause {
			pause = c.firstPause
		}
		if !sleep(ctx, pause/2+rand.N(pause/2+1)) {
			return Proof{}, c.ended(ctx, err)
		}
		pause = min(2*pause, c.maxPause)
	}
}

// outcome returns the proof or the error of a reply, and false if the job goes on.
func outcome(result *cuzkv1.AwaitProofResponse) (proof Proof, isEnd bool, err error) {
	id := result.GetJobId()
	switch result.GetStatus() {
	case cuzkv1.AwaitProofResponse_COMPLETED:
		return proofOf(result), true, nil
	case cuzkv1.AwaitProofResponse_FAILED:
		return Proof{}, true, &ProvingFailedError{JobID: id, Reason: result.GetErrorMessage()}
	case cuzkv1.AwaitProofResponse_CANCELLED:
		return Proof{}, true, &CancelledError{JobID: id}
	case cuzkv1.AwaitProofResponse_TIMEOUT:
		return Proof{}, false, nil
	default:
		return Proof{}, true, &UnknownJobError{JobID: id}
	}
}

func proofOf(result *cuzkv1.AwaitProofResponse) Proof {
	milliseconds := func(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Proof{
		JobID:     result.GetJobId(),
		Bytes:     result.GetProof(),
		QueueWait: milliseconds(result.GetQueueWaitMs()),
		SRSLoad:   milliseconds(result.GetSrsLoadMs()),
		Synthesis: milliseconds(result.GetSynthesisMs()),
		Compute:   milliseconds(result.GetGpuComputeMs()),
		Total:     milliseconds(result.GetTotalMs()),
	}
}

// isTemporary returns true if the same call may succeed later.
func isTemporary(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted:
		return true
	// The other end closed the stream. The caller's own context is looked at before.
	case codes.Canceled:
		return true
	default:
		return false
	}
}

// ended returns the error of a call that is not repeated. If ctx ended the repetitions, the
// error is that of ctx and that of the last call.
func (c *Client) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return c.typed(err)
	}
	if err != nil && isTemporary(err) && status.Code(err) != codes.Canceled {
		return &UnavailableError{Address: c.address, Err: errors.Join(ctx.Err(), err)}
	}
	return errors.Join(ctx.Err(), err)
}

// sleep returns false if ctx ends before the time is over.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
