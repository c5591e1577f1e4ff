// Mail: the stream of the deliveries of an agent, and what its caller does with it. A delivery is
// handed out once; until its settlement has a result it is in held.

package hive

import (
	"cmp"
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.invalid/hive/clients/go/hivev1"
)

const (
	defaultWindow = 8
	closeLimit    = 10 * time.Second
)

// MailOptions are the settings of a [Mail]. The zero value has the defaults.
type MailOptions struct {
	// Window is how many deliveries may be out at once, at most 256. Default: 8.
	Window uint32
	// WindowBytes is how many bytes of bodies may be out at once. Default: 3 MiB, the maximum.
	WindowBytes uint32
	// OrphanGrace is how long leases outlive a break, at most 1 h. Default: the broker's, 30 s.
	OrphanGrace time.Duration
	// StreamID names the stream for the broker. A program that is started again with the same one
	// gets what it held. Default: one of this Mail alone.
	StreamID string
}

// Mail is a stream of deliveries. It opens itself, also again after a break, and then keeps the
// leases. Close it.
type Mail struct {
	hive    *Hive
	opening *hivev1.OpenDeliveries
	values  context.Context // of the contexts of deliveries
	cancel  context.CancelFunc
	done    chan struct{} // closed when no goroutine of this Mail is left

	mu       sync.Mutex
	changed  chan struct{} // closed at each change, and replaced
	held     map[string]*Delivery
	queue    []*Delivery   // those of held that were not handed out
	settling []*settlement // of held, without a result; the oldest first
	sent     int           // how many of settling were sent on the present stream
	pings    int           // not yet answered
	opened   bool          // the present stream has listed its leases
	handlers int           // that run
	end      error         // why there are no more deliveries; io.EOF after Close
	limit    *time.Timer   // of the time between end and the end of the stream
}

// Mail takes the mail of the socket's agent. The end of ctx closes it as [Mail.Close] does, and
// then the error of the loop is that of ctx. Mail does not wait for the broker: a refusal, such as
// HARNESS_ATTACHED, ends the loop.
func (h *Hive) Mail(ctx context.Context, options *MailOptions) *Mail {
	more := orDefault(options)
	opening := &hivev1.OpenDeliveries{
		StreamId: cmp.Or(more.StreamID, newID()),
		Window: &hivev1.DeliveryWindow{
			Deliveries: cmp.Or(more.Window, defaultWindow),
			Bytes:      more.WindowBytes,
		},
	}
	if more.OrphanGrace != 0 {
		opening.OrphanGrace = durationpb.New(more.OrphanGrace)
	}
	values := context.WithoutCancel(ctx)
	streaming, cancel := context.WithCancel(values)
	m := &Mail{
		hive:    h,
		opening: opening,
		values:  values,
		cancel:  cancel,
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		held:    map[string]*Delivery{},
	}
	unwatch := context.AfterFunc(ctx, func() {
		m.shutdown(errEnded(ctx.Err(), "the context of the mail ended"))
	})
	go func() {
		err := h.reopen(streaming, m.session)
		unwatch()
		m.finish(err)
	}()
	return m
}

// Next waits for the next delivery. The error is io.EOF after [Mail.Close], and otherwise an
// [*Error]: of ctx, after which Next may be called again, or of the mail, which has ended then.
func (m *Mail) Next(ctx context.Context) (*Delivery, error) {
	for {
		m.mu.Lock()
		if m.end != nil {
			defer m.mu.Unlock()
			return nil, m.end
		}
		if len(m.queue) > 0 {
			defer m.mu.Unlock()
			delivery := m.queue[0]
			m.queue = m.queue[1:]
			return delivery, nil
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errEnded(ctx.Err(), "the wait for a delivery ended")
		}
	}
}

// Deliveries returns the deliveries until the mail is closed, or has ended for good. In the second
// case the last pair has the error.
func (m *Mail) Deliveries() iter.Seq2[*Delivery, error] {
	return func(yield func(*Delivery, error) bool) {
		for {
			delivery, err := m.Next(context.Background())
			if err == io.EOF || !yield(delivery, err) || err != nil {
				return
			}
		}
	}
}

// Close hands out no more deliveries, cancels the contexts of those that are not settled, and
// waits until settlements have their results and handlers of [Mail.Each] have returned, for 10 s
// at most. Then the broker requeues the rest without an attempt. A second Close waits for the
// first.
func (m *Mail) Close() error {
	m.shutdown(io.EOF)
	<-m.done
	return nil
}

// shutdown begins to close.
func (m *Mail) shutdown(end error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return
	}
	m.end, m.queue = end, nil
	for _, delivery := range m.held {
		if delivery.settlement == nil {
			delivery.lose(errMailClosed())
		}
	}
	limit := closeLimit
	if m.isIdle() && m.hive.current.Load() == nil {
		limit = 0 // there is nothing to say to a broker that is not there
	}
	m.limit = time.AfterFunc(limit, m.cancel)
	m.change()
}

// isIdle returns whether the broker has nothing of this mail, as far as is known.
func (m *Mail) isIdle() bool {
	return len(m.held) == 0 && m.handlers == 0
}

// finish ends everything that waits for the stream, which has ended.
func (m *Mail) finish(err error) {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil {
		m.end = err
	} else {
		m.limit.Stop()
		err = errMailClosed()
	}
	for _, delivery := range m.held {
		delivery.lose(err)
	}
	for _, settlement := range m.settling {
		settlement.resolve(0, err)
	}
	m.held, m.queue, m.settling = nil, nil, nil
	m.change()
	close(m.done)
}

// change wakes all that wait for a change.
func (m *Mail) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func errMailClosed() *Error {
	return &Error{
		Code:    codes.Canceled,
		Message: "the mail was closed before the delivery was settled: it may be delivered again",
	}
}
