package hive_test

import (
	"testing"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

func TestAMessageIsSentReceivedAndAcked(t *testing.T) {
	r := newRig(t)
	ada, bob := r.connect("ada"), r.connect("bob")
	sent, err := ada.Send(soon(t), "bob", "hello", nil)
	check(t, err)
	mail := bob.Mail(soon(t), nil)
	defer mail.Close()
	for delivery, err := range mail.Deliveries() {
		check(t, err)
		equal(t, delivery.Message.GetId(), sent.GetMessageId())
		equal(t, delivery.Message.GetBody(), "hello")
		equal(t, delivery.Attempt, 1)
		state, err := delivery.Ack(soon(t))
		check(t, err)
		equal(t, state, hivev1.DeliveryState_DELIVERY_STATE_ACKED)
		_, err = delivery.Ack(soon(t))
		equal(t, hive.FromError(err).Message != "", true)
		break
	}
	check(t, mail.Close())
	check(t, mail.Close())
}
