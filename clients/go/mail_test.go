package hive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

const (
	acked = hivev1.DeliveryState_DELIVERY_STATE_ACKED
	ready = hivev1.DeliveryState_DELIVERY_STATE_READY
	dead  = hivev1.DeliveryState_DELIVERY_STATE_DEAD
)

func (r *rig) send(to hive.Recipient, body string) uint64 {
	r.t.Helper()
	sent, err := r.connect("operator").Send(soon(r.t), to, body, nil)
	check(r.t, err)
	return sent.GetMessageId()
}

func next(t *testing.T, mail *hive.Mail) *hive.Delivery {
	t.Helper()
	delivery, err := mail.Next(soon(t))
	if err != nil {
		stacks := make([]byte, 1<<20)
		t.Log(string(stacks[:runtime.Stack(stacks, true)]))
		t.Fatal(err)
	}
	return delivery
}

func TestEachSettlementHasItsState(t *testing.T) {
	r := newRig(t)
	mail := r.connect("bob").Mail(soon(t), nil)
	defer mail.Close()

	id := r.send("bob", "acked")
	delivery := next(t, mail)
	equal(t, delivery.Message.GetId(), id)
	equal(t, delivery.Attempt, 1)
	equal(t, delivery.RedeliveryCause, 0)
	state, err := delivery.Ack(soon(t))
	check(t, err)
	equal(t, state, acked)
	_, err = delivery.Release(soon(t))
	equal(t, hive.FromError(err).Code, codes.FailedPrecondition)
	equal(t, hive.FromError(err).Reason, "")
	check(t, delivery.Context().Err()) // an acked lease is not lost

	r.send("bob", "released")
	state, err = next(t, mail).Release(soon(t))
	check(t, err)
	equal(t, state, ready)
	delivery = next(t, mail)
	equal(t, delivery.Attempt, 1)
	equal(t, delivery.RedeliveryCause, hivev1.RedeliveryCause_REDELIVERY_CAUSE_NOT_RECEIVED)

	cancelled, cancel := context.WithCancel(soon(t))
	cancel()
	_, err = delivery.Ack(cancelled) // it was not sent
	equal(t, errors.Is(err, context.Canceled), true)

	state, err = delivery.Nack(soon(t), errors.New(strings.Repeat("\xff", 5000)), false)
	check(t, err)
	equal(t, state, ready)
	delivery = next(t, mail)
	equal(t, delivery.Attempt, 2)
	equal(t, delivery.RedeliveryCause, hivev1.RedeliveryCause_REDELIVERY_CAUSE_NACKED)
	state, err = delivery.Nack(soon(t), nil, true)
	check(t, err)
	equal(t, state, dead)
}

func TestCloseReleasesWhatIsHeld(t *testing.T) {
	r := newRig(t)
	bob := r.connect("bob")
	first, second, third := r.send("bob", "1"), r.send("bob", "2"), r.send("bob", "3")
	mail := bob.Mail(soon(t), nil)
	held := next(t, mail)
	equal(t, held.Message.GetId(), first)
	_, err := next(t, mail).Ack(soon(t))
	check(t, err)
	check(t, mail.Close())
	equal(t, errors.Is(held.Context().Err(), context.Canceled), true)
	_, err = held.Ack(soon(t))
	equal(t, hive.FromError(err).Code, codes.Canceled)
	_, err = mail.Next(soon(t))
	equal(t, err, io.EOF)
	for range mail.Deliveries() {
		t.Error("there are no deliveries after the close")
	}
	check(t, mail.Each(func(context.Context, *hive.Delivery) error { return nil }))
	equal(t, r.state("bob", first), ready)
	equal(t, r.state("bob", second), acked)
	equal(t, r.state("bob", third), ready)

	again := bob.Mail(soon(t), nil)
	defer again.Close()
	delivery := next(t, again)
	equal(t, delivery.Message.GetId(), first)
	equal(t, delivery.Attempt, 1)
}

func TestTheEndOfTheContextClosesTheMail(t *testing.T) {
	r := newRig(t)
	id := r.send("bob", "x")
	ctx, cancel := context.WithCancel(soon(t))
	mail := r.connect("bob").Mail(ctx, nil)
	held := next(t, mail)
	brief, stop := context.WithTimeout(soon(t), time.Millisecond)
	defer stop()
	_, err := mail.Next(brief)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	cancel()
	<-held.Context().Done()
	for _, err := range mail.Deliveries() {
		equal(t, errors.Is(err, context.Canceled), true)
	}
	check(t, mail.Close())
	equal(t, r.state("bob", id), ready)
}

func TestAMailWithoutABrokerIsClosedAtOnce(t *testing.T) {
	r := stoppedRig(t)
	h := r.connect("bob")
	mail := h.Mail(soon(t), nil)
	begin := time.Now()
	check(t, mail.Close())
	if time.Since(begin) > 5*time.Second {
		t.Error("it waited for the broker")
	}
}

func TestACloseWaitsForABrokerThatHasLeasesOfIt(t *testing.T) {
	r := newRig(t)
	id := r.send("bob", "x")
	mail := r.connect("bob").Mail(soon(t), nil)
	held := next(t, mail)
	r.kill()
	closed := make(chan error)
	go func() { closed <- mail.Close() }()
	<-held.Context().Done()
	r.start()
	check(t, <-closed)
	equal(t, r.state("bob", id), ready)
}

func TestANewerStreamTakesTheLeases(t *testing.T) {
	r := newRig(t)
	id := r.send("bob", "x")
	options := &hive.MailOptions{StreamID: "same"}
	first := r.connect("bob").Mail(soon(t), options)
	defer first.Close()
	lost := next(t, first)
	second := r.connect("bob").Mail(soon(t), options)
	defer second.Close()
	found := next(t, second)
	equal(t, found.Token, lost.Token)
	<-lost.Context().Done()
	equal(t, hive.FromError(context.Cause(lost.Context())).Reason, "STREAM_REPLACED")
	_, err := first.Next(soon(t))
	equal(t, hive.FromError(err).Reason, "STREAM_REPLACED")
	_, err = lost.Ack(soon(t))
	equal(t, hive.FromError(err).Reason, "STREAM_REPLACED")
	_, err = found.Ack(soon(t))
	check(t, err)
	equal(t, r.state("bob", id), acked)
}

func TestAnOperatorGetsNoStream(t *testing.T) {
	mail := newRig(t).connect("operator").Mail(soon(t), nil)
	defer mail.Close()
	err := mail.Each(func(context.Context, *hive.Delivery) error { return nil })
	equal(t, hive.FromError(err).Reason, "NOT_AN_AGENT")
}

func TestHandlersSettleByTheirResult(t *testing.T) {
	r := newRig(t)
	mail := r.connect("bob").Mail(soon(t), &hive.MailOptions{Window: 2})
	good, bad, hanging := r.send("bob", "good"), r.send("bob", "bad"), r.send("bob", "hang")
	own := r.send("bob", "own")
	var mu sync.Mutex
	attempts := map[string]uint32{}
	hangs, cancelled, finished := make(chan bool, 1), make(chan bool, 1), make(chan error)
	go func() {
		finished <- mail.Each(func(ctx context.Context, delivery *hive.Delivery) error {
			body := delivery.Message.GetBody()
			mu.Lock()
			attempts[body] = delivery.Attempt
			mu.Unlock()
			switch body {
			case "bad":
				if delivery.Attempt == 1 {
					return errors.New("handler failed")
				}
			case "own":
				_, err := delivery.Nack(ctx, errors.New("unreadable"), true)
				return err
			case "hang":
				hangs <- true
				<-ctx.Done()
				cancelled <- true
			}
			return nil
		})
	}()
	<-hangs
	for r.state("bob", own) != dead || r.state("bob", bad) != acked {
		r.event()
	}
	check(t, mail.Close())
	<-cancelled
	check(t, <-finished)
	equal(t, attempts["bad"], 2)
	equal(t, r.state("bob", good), acked)
	equal(t, r.state("bob", hanging), ready)
}

func TestManyLongErrorsAreSettled(t *testing.T) {
	const count = 250
	r := newRig(t)
	ada, bob := r.connect("ada"), r.connect("bob")
	for n := range count {
		_, err := ada.Send(soon(t), "bob", fmt.Sprint(n), nil)
		check(t, err)
	}
	mail := bob.Mail(soon(t), &hive.MailOptions{Window: 256})
	defer mail.Close()
	var deliveries []*hive.Delivery
	for range count {
		deliveries = append(deliveries, next(t, mail))
	}
	results := make(chan error)
	for _, delivery := range deliveries {
		go func() {
			_, err := delivery.Nack(soon(t), errors.New(strings.Repeat("x", 8192)), true)
			results <- err
		}()
	}
	for range count {
		check(t, <-results)
	}
}

// event waits for an event, or a moment.
func (r *rig) event() {
	ctx, cancel := context.WithTimeout(soon(r.t), 50*time.Millisecond)
	defer cancel()
	for range r.connect("operator").Follow(ctx, nil) {
		return
	}
}

func TestLeasesOutliveTheBroker(t *testing.T) {
	r := newRig(t)
	bob := r.connect("bob")
	mail := bob.Mail(soon(t), nil)
	defer mail.Close()
	id := r.send("bob", "x")
	delivery := next(t, mail)
	r.kill()
	done := make(chan error)
	go func() {
		state, err := delivery.Ack(soon(t))
		if err == nil && state != acked {
			err = fmt.Errorf("it is %v", state)
		}
		done <- err
	}()
	r.start()
	check(t, <-done)
	equal(t, r.state("bob", id), acked)
	other := r.send("bob", "y")
	equal(t, next(t, mail).Message.GetId(), other) // and the acked one did not come again
	r.stop()
	r.start()
	third := r.send("bob", "z")
	equal(t, next(t, mail).Message.GetId(), third)
}

func TestKilledBrokersLoseAndDoubleNothing(t *testing.T) {
	const count, kills = 300, 5
	r := newRig(t)
	ada, bob := r.connect("ada"), r.connect("bob")
	mail := bob.Mail(soon(t), &hive.MailOptions{Window: 16})
	var mu sync.Mutex
	settled, came := map[string]int{}, make(chan bool, 10*count)
	finished := make(chan error)
	go func() {
		finished <- mail.Each(func(_ context.Context, delivery *hive.Delivery) error {
			state, err := delivery.Ack(context.Background())
			if err != nil || state != acked {
				return fmt.Errorf("%v, %w", state, err)
			}
			mu.Lock()
			defer mu.Unlock()
			settled[delivery.Message.GetBody()]++
			came <- true
			return nil
		})
	}()
	sent := make(chan uint64, count)
	for sender := range 3 {
		go func() {
			for n := range count / 3 {
				receipt, err := ada.Send(soon(t), "bob", fmt.Sprint(sender, "-", n), nil)
				if err != nil {
					t.Error(err)
				}
				sent <- receipt.GetMessageId()
			}
		}()
	}
	for n := range count {
		select {
		case <-came:
		case <-soon(t).Done():
			t.Fatalf("%d of %d came", n, count)
		}
		if n%(count/(kills+1)) == count/(kills+1)-1 && n < count-count/(kills+1) {
			r.kill()
			r.start()
		}
	}
	ids := map[uint64]bool{}
	for range count {
		ids[<-sent] = true
	}
	equal(t, len(ids), count)
	check(t, mail.Close())
	check(t, <-finished)
	equal(t, len(settled), count)
	for body, times := range settled {
		if times != 1 {
			t.Errorf("%s was acked %d times", body, times)
		}
	}
	inbox := hivev1.NewInboxServiceClient(bob)
	left, err := inbox.GetInboxStatus(soon(t), &hivev1.GetInboxStatusRequest{})
	check(t, err)
	equal(t, left.GetReadyCount()+left.GetLeasedCount()+left.GetDeadCount(), 0)
}
