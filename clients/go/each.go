// Handling deliveries side by side. No handler outlives its call of Each.

package hive

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
)

// Each calls the handler for each delivery, for as many at once as the window has. A delivery
// whose handler returns nil is acked. One whose handler returns an error is nacked with its text.
// A handler may settle its delivery itself, for example with Release. The context of the handler
// is that of the delivery: once it has ended, nothing is settled, and the handler has to return.
// Do not close the mail in a handler.
//
// Each returns nil when the mail is closed, or the error that has ended it. A settlement that the
// broker refuses is no such error, because the message is delivered again.
func (m *Mail) Each(handler func(ctx context.Context, delivery *Delivery) error) error {
	if handler == nil {
		return &Error{Code: codes.InvalidArgument, Message: "handler is nil: pass a function"}
	}
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, m.opening.GetWindow().GetDeliveries())
	for delivery, err := range m.Deliveries() {
		if err != nil {
			return err
		}
		slots <- struct{}{}
		running.Add(1)
		go func() {
			defer func() { <-slots; running.Done() }()
			m.handle(delivery, handler)
		}()
	}
	return nil
}

func (m *Mail) handle(delivery *Delivery, handler func(context.Context, *Delivery) error) {
	if !m.begin(delivery) {
		return
	}
	defer m.ended()
	failure := handler(delivery.context, delivery)
	switch {
	case delivery.context.Err() != nil:
	case failure == nil:
		delivery.Ack(context.Background())
	default:
		delivery.Nack(context.Background(), failure, false)
	}
}

// begin counts a handler, for which Close waits, unless the delivery is lost.
func (m *Mail) begin(delivery *Delivery) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delivery.context.Err() != nil {
		return false
	}
	m.handlers++
	return true
}

func (m *Mail) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers--
	m.change()
}
