// Pauses between attempts: the broker's if it states one, else growing ones of the client.

package hive

import (
	"context"
	"io"
	"math/rand"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// pauses are those between the attempts of one call. The zero value begins with the first.
type pauses struct{ own time.Duration }

// next returns the next pause. A part of it is random, so that many clients do not come at once.
func (p *pauses) next(stated time.Duration) time.Duration {
	if stated > 0 {
		return time.Duration(float64(stated) * (1 + rand.Float64()/4))
	}
	p.own = min(max(2*p.own, firstPause), longestPause)
	return time.Duration(float64(p.own) * (0.5 + rand.Float64()/2))
}

// reopen runs a session of a stream again after each break, without an end in time. A session
// returns nil when it is complete, and calls alive when the broker has answered. Without an answer
// it is a break after 10 s, as for any call.
func (h *Hive) reopen(
	ctx context.Context, session func(ctx context.Context, alive func()) error,
) error {
	var pauses pauses
	for {
		inner, cancel := context.WithCancel(ctx)
		opening := time.AfterFunc(attemptLimit, cancel)
		err := session(inner, func() {
			opening.Stop()
			pauses.own = 0
		})
		opening.Stop()
		cancel()
		if err == nil {
			return nil
		}
		if err == io.EOF {
			err = &Error{Code: codes.Unavailable, Message: "the broker ended the stream"}
		}
		failure := h.failure(ctx, err)
		if !failure.reopens() {
			return failure
		}
		if ended := h.sleep(ctx, pauses.next(failure.RetryAfter)); ended != nil {
			return ended
		}
	}
}
