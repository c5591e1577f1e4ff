// Deliveries: messages with a lease. Each is settled at most once.

package hive

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"example.invalid/hive/clients/go/hivev1"
)

// Delivery is a message on its way to this agent, leased to this program until it is settled.
type Delivery struct {
	// Message is the message.
	Message *hivev1.Message
	// Attempt is the number of this try, from 1.
	Attempt uint32
	// RedeliveryCause is why the message was requeued; REDELIVERY_CAUSE_UNSPECIFIED if it was not.
	RedeliveryCause hivev1.RedeliveryCause
	// Delivery is all that the broker sent of the delivery.
	Delivery *hivev1.Delivery
	// Token is the proof of the lease.
	Token string

	mail       *Mail
	context    context.Context
	lose       context.CancelCauseFunc
	settlement *settlement // nil until it is settled; guarded by mail.mu
}

func newDelivery(m *Mail, lease *hivev1.LeasedDelivery) *Delivery {
	delivery := &Delivery{
		Message:         lease.GetDelivery().GetMessage(),
		Attempt:         lease.GetDelivery().GetAttempt(),
		RedeliveryCause: lease.GetDelivery().GetRedeliveryCause(),
		Delivery:        lease.GetDelivery(),
		Token:           lease.GetLeaseToken(),
		mail:            m,
	}
	delivery.context, delivery.lose = context.WithCancelCause(m.values)
	return delivery
}

// Context returns a context that is cancelled when the lease is lost, or the mail is closed before
// the delivery is settled. Then stop the work: the message is delivered again. [context.Cause] has
// the [*Error].
func (d *Delivery) Context() context.Context { return d.context }

// Ack settles the delivery as done, and returns its state, ACKED, once that is committed. The end
// of ctx ends the wait, not the settlement. The error has the reason LEASE_LOST if the message is
// delivered again, to this or another consumer.
func (d *Delivery) Ack(ctx context.Context) (hivev1.DeliveryState, error) {
	return d.settle(ctx, &hivev1.Settlement{
		Action: &hivev1.Settlement_Ack{Ack: &hivev1.Ack{}},
	})
}

// Nack settles the delivery as failed, as Ack does. The message is delivered again after a
// backoff, state READY, or is a dead letter, state DEAD: after its last attempt, or at once if
// permanent. The broker keeps the first 4 KiB of the text of failure.
func (d *Delivery) Nack(ctx context.Context, failure error, permanent bool) (
	hivev1.DeliveryState, error,
) {
	text := ""
	if failure != nil {
		text = shortened(failure.Error())
	}
	return d.settle(ctx, &hivev1.Settlement{
		Action: &hivev1.Settlement_Nack{Nack: &hivev1.Nack{Error: text, Permanent: permanent}},
	})
}

// Release settles the delivery as not begun, as Ack does: it is delivered again at once, without
// an attempt.
func (d *Delivery) Release(ctx context.Context) (hivev1.DeliveryState, error) {
	return d.settle(ctx, &hivev1.Settlement{
		Action: &hivev1.Settlement_Release{Release: &hivev1.Release{}},
	})
}

func (d *Delivery) settle(ctx context.Context, wire *hivev1.Settlement) (
	hivev1.DeliveryState, error,
) {
	settlement, err := d.enqueue(ctx, wire)
	if err != nil {
		return 0, err
	}
	select {
	case <-settlement.done:
	case <-ctx.Done():
		return 0, errEnded(ctx.Err(),
			"the settlement was made, and its result did not come in time")
	}
	return settlement.state, settlement.err
}

func (d *Delivery) enqueue(ctx context.Context, wire *hivev1.Settlement) (*settlement, error) {
	m := d.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case d.settlement != nil:
		return nil, &Error{
			Code: codes.FailedPrecondition,
			Message: fmt.Sprintf("the delivery of message %d is settled already: settle it once",
				d.Message.GetId()),
		}
	case d.context.Err() != nil:
		return nil, context.Cause(d.context)
	case ctx.Err() != nil:
		return nil, errEnded(ctx.Err(),
			"the context ended before the settlement: nothing was settled")
	}
	wire.Target = &hivev1.Settlement_LeaseToken{LeaseToken: d.Token}
	d.settlement = &settlement{delivery: d, wire: wire, done: make(chan struct{})}
	m.settling = append(m.settling, d.settlement)
	m.change()
	return d.settlement, nil
}

func errLeaseLost(d *Delivery) *Error {
	return fromRefusal(&hivev1.Refusal{
		Reason: hivev1.Reason_REASON_LEASE_LOST,
		Message: fmt.Sprintf("the lease on message %d was lost while the connection was broken: "+
			"stop the work, the message is delivered again", d.Message.GetId()),
	})
}

// shortened returns a text as the contract allows it for an error: valid UTF-8 of at most 4 KiB.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= errorBytesMax {
		return text
	}
	end := errorBytesMax
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
