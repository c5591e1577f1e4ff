package hive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

func TestVerbsDoWhatTheySay(t *testing.T) {
	r := newRig(t)
	ada, bob := r.connect("ada"), r.connect("bob")

	for _, to := range []hive.Recipient{hive.Operator, hive.Parent, hive.Everyone, "ada"} {
		sent, err := bob.Send(soon(t), to, "to "+string(to), nil)
		check(t, err)
		again, err := ada.Send(soon(t), "bob", "back", &hive.SendOptions{
			InReplyTo: sent.GetMessageId(), RequestID: "one",
		})
		if to == hive.Operator { // ada did not get it
			equal(t, hive.FromError(err).Reason, "MESSAGE_NOT_FOUND")
			continue
		}
		if to == hive.Parent {
			check(t, err)
			equal(t, again.GetRecipientCount(), 1)
		} else {
			equal(t, hive.FromError(err).Reason, "REQUEST_ID_REUSED")
		}
	}

	reminder, err := ada.Remind(soon(t), "later", time.Hour, nil)
	check(t, err)
	equal(t, reminder.GetState(), hivev1.ReminderState_REMINDER_STATE_PENDING)
	at := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	reminder, err = ada.RemindAt(soon(t), "tomorrow", at, &hive.RemindOptions{RequestID: "two"})
	check(t, err)
	equal(t, reminder.GetDueTime().AsTime().Unix(), at.Unix())

	first, err := ada.Wake(soon(t), "matrix", "one", &hive.WakeOptions{CoalescingKey: "k"})
	check(t, err)
	second, err := ada.Wake(soon(t), "matrix", "two", &hive.WakeOptions{CoalescingKey: "k"})
	check(t, err)
	equal(t, second.GetSupersededMessageId(), first.GetMessageId())

	check(t, ada.Publish(soon(t), "ci", []*hivev1.PublishedLooseEnd{{Key: "1", Text: "red"}}))
	ends := hivev1.NewLooseEndServiceClient(ada)
	listed, err := ends.ListLooseEnds(soon(t), &hivev1.ListLooseEndsRequest{})
	check(t, err)
	equal(t, len(listed.GetLooseEnds()), 3)
	check(t, ada.Publish(soon(t), "ci", nil))

	supported, err := ada.Supports(soon(t), "questions")
	check(t, err)
	equal(t, supported, true)
}

func TestARefusalOfTheBrokerHasItsFacts(t *testing.T) {
	ada := newRig(t).connect("ada")
	_, err := ada.Send(soon(t), "bobby", "hello", nil)
	var e *hive.Error
	equal(t, errors.As(err, &e), true)
	equal(t, e.Code, codes.NotFound)
	equal(t, e.Reason, "AGENT_NOT_FOUND")
	equal(t, e.Metadata["nearest"], "bob")
	_, err = ada.Send(soon(t), "bob", "", nil)
	e = hive.FromError(err)
	equal(t, e.Reason, "FIELD_INVALID")
	equal(t, e.Fields[0].Field, "body")
	_, err = ada.Answer(soon(t), 4711, "yes", nil)
	equal(t, hive.FromError(err).Reason, "QUESTION_NOT_FOUND")
	_, err = hivev1.NewAdminServiceClient(ada).RetireAgent(soon(t), &hivev1.RetireAgentRequest{})
	equal(t, hive.FromError(err).Reason, "METHOD_NOT_SERVED")
}

func TestTheOutcomeOfAQuestionComesAfterARestart(t *testing.T) {
	r := newRig(t)
	ada, bob := r.connect("ada"), r.connect("bob")
	asked, err := bob.Ask(soon(t), hive.Parent, "Deploy?", &hive.AskOptions{
		Options: []string{"yes", "no"}, TTL: time.Hour,
	})
	check(t, err)
	equal(t, asked.Question.GetTarget(), "ada")
	brief, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = asked.Outcome(brief)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	type outcome struct {
		question *hivev1.Question
		err      error
	}
	outcomes := make(chan outcome)
	go func() {
		question, err := asked.Outcome(soon(t))
		outcomes <- outcome{question, err}
	}()
	r.kill()
	r.start()
	answered, err := ada.Answer(soon(t), asked.Question.GetId(), "go",
		&hive.AnswerOptions{Choices: []string{"yes"}})
	check(t, err)
	equal(t, answered.GetState(), hivev1.QuestionState_QUESTION_STATE_ANSWERED)
	got := <-outcomes
	check(t, got.err)
	equal(t, got.question.GetAnswer().GetChoices()[0], "yes")

	asked, err = bob.Ask(soon(t), "ada", "Soon?", &hive.AskOptions{TTL: time.Second})
	check(t, err)
	question, err := asked.Outcome(soon(t))
	check(t, err)
	equal(t, question.GetState(), hivev1.QuestionState_QUESTION_STATE_EXPIRED)
}

func TestAFollowerGoesOnAfterABreak(t *testing.T) {
	r := newRig(t)
	ada := r.connect("ada")
	ctx, cancel := context.WithCancel(soon(t))
	facts, ended := make(chan hive.Fact, 100), make(chan error, 1)
	// From the beginning of the log, which an event of its own tells.
	after := hive.Position{}
	info, err := ada.Info(soon(t))
	check(t, err)
	after.LogID = info.GetLogId()
	go func() {
		for step, err := range ada.Follow(ctx, &hive.FollowOptions{After: after}) {
			if err != nil {
				ended <- err
				return
			}
			if fact, ok := step.(hive.Fact); ok {
				facts <- fact
			}
		}
	}()
	var last hive.Position
	seen := map[uint64]bool{}
	next := func(message uint64) {
		t.Helper()
		for {
			select {
			case fact := <-facts:
				if seen[fact.Event.GetSequence()] || fact.Event.GetSequence() < last.Sequence {
					t.Fatalf("twice, or out of order: %v", fact.Event)
				}
				seen[fact.Event.GetSequence()], last = true, fact.Position
				if fact.Event.GetKind() == hivev1.EventKind_EVENT_KIND_MESSAGE_ACCEPTED &&
					fact.Event.GetMessageId() == message {
					return
				}
			case err := <-ended:
				t.Fatal(err)
			case <-soon(t).Done():
				t.Fatal("the event did not come")
			}
		}
	}
	for round := range 3 {
		sent, err := ada.Wake(soon(t), "ci", "x", nil)
		check(t, err)
		if round == 1 {
			r.kill()
			r.start()
		}
		next(sent.GetMessageId())
	}
	middle := last
	sent, err := ada.Wake(soon(t), "ci", "y", nil)
	check(t, err)
	next(sent.GetMessageId())
	cancel()
	equal(t, errors.Is(<-ended, context.Canceled), true)

	for step, err := range ada.Follow(soon(t), &hive.FollowOptions{After: middle}) {
		check(t, err)
		equal(t, step.(hive.Fact).Position.Sequence > middle.Sequence, true)
		break
	}
	other := hive.Position{LogID: "another", Sequence: 1}
	for step, err := range ada.Follow(soon(t), &hive.FollowOptions{After: other}) {
		check(t, err)
		changed, ok := step.(hive.LogChanged)
		equal(t, ok, true)
		equal(t, changed.Position.LogID, info.GetLogId())
		break
	}
	for _, err := range ada.Follow(soon(t), &hive.FollowOptions{Agent: "nosuch"}) {
		equal(t, hive.FromError(err).Reason != "", true)
	}
}
