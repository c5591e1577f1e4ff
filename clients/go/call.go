// The one place that repeats calls. Each repeat sends the identical request, with the same request
// id, so it has no second effect.

package hive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// attemptLimit bounds one attempt of a call, because its answer can be lost.
const attemptLimit = 10 * time.Second

// Invoke makes a unary call for a generated client, and repeats it until it is answered, refused
// for good, or out of time. Its time is up to the deadline of ctx, or [Options.Timeout] without
// one. An empty request id is set in a copy of the request. The error is an [*Error].
func (h *Hive) Invoke(
	ctx context.Context, method string, request, reply any, options ...grpc.CallOption,
) error {
	limit := attemptLimit
	if waits, ok := request.(interface{ GetWait() *durationpb.Duration }); ok {
		limit += waits.GetWait().AsDuration()
	}
	request = identified(request)
	return h.repeat(ctx, limit, func(ctx context.Context) error {
		if _, err := h.greet(ctx); err != nil {
			return err
		}
		return h.conn.Invoke(ctx, method, request, reply, options...)
	})
}

// NewStream opens a stream for a generated client. It is not repeated, and [FromError] tells what
// the errors of the stream mean.
func (h *Hive) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	greeting, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if _, err := h.greet(greeting); err != nil {
		return nil, h.failure(ctx, err)
	}
	stream, err := h.conn.NewStream(ctx, desc, method, options...)
	if err != nil {
		return nil, h.failure(ctx, err)
	}
	return stream, nil
}

// repeat makes attempts, of at most limit each, until one succeeds or fails for good.
func (h *Hive) repeat(
	ctx context.Context, limit time.Duration, attempt func(context.Context) error,
) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.options.Timeout)
		defer cancel()
	}
	deadline, _ := ctx.Deadline()
	var pauses pauses
	var refusal *Error
	for {
		breaks := h.breaks.Load()
		limited, cancel := context.WithTimeout(ctx, limit)
		err := attempt(limited)
		cancel()
		if err == nil {
			return nil
		}
		failure := h.failure(ctx, err)
		failure.broken = h.breaks.Load() != breaks
		if failure.repeats() {
			if failure.Reason != "" {
				refusal = failure
			}
			if pause := pauses.next(failure.RetryAfter); time.Until(deadline) > pause {
				if failure = h.sleep(ctx, pause); failure == nil {
					continue
				}
			}
		}
		switch {
		case failure.Code != codes.DeadlineExceeded:
			return failure
		case refusal != nil:
			return refusal
		}
		return h.late()
	}
}

// failure returns why an attempt failed: for a reason of the broker, or because the caller, the
// time of the call or this Hive ended.
func (h *Hive) failure(ctx context.Context, err error) *Error {
	failure := FromError(err)
	if ended := h.ended(ctx); ended != nil && failure.Reason == "" {
		return ended
	}
	return failure
}

// ended returns an error if the caller, the time of the call or this Hive has ended.
func (h *Hive) ended(ctx context.Context) *Error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return errEnded(ctx.Err(), "the context of the call was cancelled")
	case h.closed.Err() != nil:
		return errClosed()
	case ctx.Err() != nil:
		return h.late()
	}
	return nil
}

// late returns the error of a call whose time has passed without an answer.
func (h *Hive) late() *Error {
	message := fmt.Sprintf("the broker at %s did not answer in time", h.path)
	if err := h.dialError.Load(); err != nil {
		message += fmt.Sprintf(": %v: check the path, and that hived runs", *err)
	}
	return errEnded(context.DeadlineExceeded, message)
}

// errEnded returns the error of a call that the end of a context has ended.
func errEnded(cause error, message string) *Error {
	code := status.FromContextError(cause).Code()
	return &Error{Code: code, Message: message, cause: cause, ended: true}
}

func errClosed() *Error {
	message := "this Hive is closed: connect again"
	return &Error{Code: codes.Canceled, Message: message, ended: true}
}

// sleep waits; it returns an error if the context or this Hive ends before.
func (h *Hive) sleep(ctx context.Context, pause time.Duration) *Error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	case <-h.closed.Done():
	}
	return h.ended(ctx)
}

// series is the random part of all ids of this process; the broker stores counted ids in few rows.
var series = rand.Text()[:12]

var counter atomic.Uint64

func newID() string { return fmt.Sprintf("%s-%d", series, counter.Add(1)) }

// identified returns the request with a request id, if it has that field. The caller's own message
// stays as it is: with an id in it, a second call with it would be taken for a repeat.
func identified(request any) any {
	message, ok := request.(proto.Message)
	if !ok {
		return request
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName("request_id")
	if field == nil || message.ProtoReflect().Get(field).String() != "" {
		return request
	}
	message = proto.Clone(message)
	message.ProtoReflect().Set(field, protoreflect.ValueOfString(newID()))
	return message
}
