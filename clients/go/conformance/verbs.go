package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

// follower is a follow that runs, and hands over one step at a time.
type follower struct {
	steps  chan object
	stop   context.CancelFunc
	failed error // set before steps is closed
}

// consumer is a mail with the deliveries that it has handed out.
type consumer struct {
	*hive.Mail
	driver *driver
}

// handled counts the handlers of an each.
type handled struct{ begun, done, cancelled atomic.Int64 }

func (d *driver) run(ctx context.Context, verb string, a *arguments) (any, error) {
	if a.Timeout > 0 && verb != "connect" {
		limited, cancel := context.WithTimeout(ctx, seconds(a.Timeout))
		defer cancel()
		ctx = limited
	}
	on, of := get[*hive.Hive](d, a.On), get[*consumer](d, a.Of)
	to := hive.Recipient(a.To)
	switch verb {
	case "cancel":
		if cancel := get[context.CancelFunc](d, "cancel "+string(a.Request)); cancel != nil {
			cancel()
		}
		return object{}, nil
	case "connect":
		path := ""
		if a.Path != nil {
			path = cmp.Or(*a.Path, "unix:") // an empty path is given, and not absent
		}
		h, err := hive.Connect(path, &hive.Options{Program: a.Program, Timeout: seconds(a.Timeout)})
		return object{}, d.put(a.As, h, err)
	case "close":
		return object{}, shut(get[any](d, cmp.Or(a.On, a.Of)))
	case "supports":
		supported, err := on.Supports(ctx, a.Capability)
		return object{"supported": supported}, err
	case "info":
		return on.Info(ctx)
	case "call":
		return call(ctx, on, a)
	case "send":
		more := &hive.SendOptions{InReplyTo: uint64(a.InReplyTo), RequestID: a.RequestID}
		return on.Send(ctx, to, a.Body, more)
	case "answer":
		more := &hive.AnswerOptions{Choices: a.Choices, RequestID: a.RequestID}
		return on.Answer(ctx, uint64(a.QuestionID), a.Text, more)
	case "remind":
		more := &hive.RemindOptions{RequestID: a.RequestID}
		return on.Remind(ctx, a.Body, seconds(a.Delay), more)
	case "wake":
		more := &hive.WakeOptions{CoalescingKey: a.CoalescingKey, RequestID: a.RequestID}
		return on.Wake(ctx, a.Label, a.Body, more)
	case "publish":
		entries := make([]*hivev1.PublishedLooseEnd, len(a.Entries))
		for i, text := range a.Entries {
			entries[i] = &hivev1.PublishedLooseEnd{}
			if err := parse(text, entries[i]); err != nil {
				return nil, err
			}
		}
		return object{}, on.Publish(ctx, a.Label, entries)
	case "ask":
		more := &hive.AskOptions{Options: a.Options, Multi: a.Multi, TTL: seconds(a.TTL),
			RequestID: a.RequestID}
		asked, err := on.Ask(ctx, to, a.Text, more)
		if err != nil {
			return nil, err
		}
		return asked.Question, d.put(a.As, asked, nil)
	case "outcome":
		return get[*hive.Asked](d, a.Of).Outcome(ctx)
	case "follow":
		return object{}, d.put(a.As, follow(on, a), nil)
	case "mail":
		mail := on.Mail(context.Background(), &hive.MailOptions{Window: a.Window,
			WindowBytes: a.WindowBytes, OrphanGrace: seconds(a.OrphanGrace), StreamID: a.StreamID})
		return object{}, d.put(a.As, &consumer{mail, d}, nil)
	case "next":
		if of != nil {
			return of.next(ctx)
		}
		return get[*follower](d, a.Of).next(ctx)
	case "each":
		counts := &handled{}
		d.put(a.As, counts, nil)
		return object{}, of.Each(counts.handler(d, a.Mode))
	case "handled":
		counts := get[*handled](d, a.Of)
		return object{"begun": counts.begun.Load(), "done": counts.done.Load(),
			"cancelled": counts.cancelled.Load()}, nil
	}
	delivery := get[*hive.Delivery](d, a.Token)
	if delivery == nil {
		return nil, status.Errorf(codes.InvalidArgument, "no verb %q, or no token %q", verb, a.Token)
	}
	var state hivev1.DeliveryState
	var err error
	switch verb {
	case "ack":
		state, err = delivery.Ack(ctx)
	case "nack":
		state, err = delivery.Nack(ctx, errors.New(a.Error), a.Permanent)
	case "release":
		state, err = delivery.Release(ctx)
	case "lost":
		return object{}, wait(ctx, delivery.Context().Done())
	}
	return object{"state": state.String()}, err
}

func call(ctx context.Context, h *hive.Hive, a *arguments) (proto.Message, error) {
	service, name, _ := strings.Cut(a.Method, "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(
		protoreflect.FullName("hive.v1." + service))
	described, ok := found.(protoreflect.ServiceDescriptor)
	if err != nil || !ok || described.Methods().ByName(protoreflect.Name(name)) == nil {
		return nil, status.Errorf(codes.InvalidArgument, "there is no method %q", a.Method)
	}
	method := described.Methods().ByName(protoreflect.Name(name))
	request, err := made(method.Input())
	if err != nil {
		return nil, err
	}
	reply, err := made(method.Output())
	if err != nil {
		return nil, err
	}
	if err := parse(a.Request, request); err != nil {
		return nil, err
	}
	return reply, h.Invoke(ctx, "/hive.v1."+a.Method, request, reply)
}

func made(message protoreflect.MessageDescriptor) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

func parse(text json.RawMessage, message proto.Message) error {
	if err := protojson.Unmarshal(text, message); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

func follow(h *hive.Hive, a *arguments) *follower {
	options := &hive.FollowOptions{Agent: a.Agent}
	if a.After != nil {
		options.After = hive.Position{LogID: a.After.LogID, Sequence: uint64(a.After.Sequence)}
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &follower{steps: make(chan object), stop: stop}
	go func() {
		defer close(f.steps)
		for step, err := range h.Follow(ctx, options) {
			said := object{}
			at := func(p hive.Position) { said["position"] = position{p.LogID, id(p.Sequence)} }
			switch step := step.(type) {
			case hive.Fact:
				said["fact"] = wire(step.Event)
				at(step.Position)
			case hive.Gap:
				said["gap"] = true
				at(step.Position)
			case hive.LogChanged:
				said["logChanged"] = true
				at(step.Position)
			case nil:
				if ctx.Err() == nil {
					f.failed = err
				}
				return
			}
			select {
			case f.steps <- said:
			case <-ctx.Done():
				return
			}
		}
	}()
	return f
}

func (f *follower) next(ctx context.Context) (any, error) {
	select {
	case step, ok := <-f.steps:
		if ok {
			return step, nil
		}
		return object{"end": true}, f.failed
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (c *consumer) next(ctx context.Context) (any, error) {
	delivery, err := c.Next(ctx)
	if err == io.EOF {
		return object{"end": true}, nil
	} else if err != nil {
		return nil, err
	}
	return object{"token": delivery.Token, "message": wire(delivery.Message),
		"attempt":  delivery.Attempt,
		"delivery": wire(delivery.Delivery)}, c.driver.put(delivery.Token, delivery, nil)
}

func (h *handled) handler(
	d *driver, mode string,
) func(context.Context, *hive.Delivery) error {
	return func(ctx context.Context, delivery *hive.Delivery) error {
		d.put(delivery.Token, delivery, nil)
		h.begun.Add(1)
		if mode == "hang" {
			<-ctx.Done()
			h.cancelled.Add(1)
			return ctx.Err()
		}
		h.done.Add(1)
		switch mode {
		case "fail":
			return errors.New("handler failed")
		case "fail long":
			return errors.New(strings.Repeat("handler failed", 1000))
		}
		return nil
	}
}

func wait(ctx context.Context, signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// shut closes what a verb has made.
func shut(made any) error {
	switch made := made.(type) {
	case *follower:
		made.stop()
	case io.Closer:
		return made.Close()
	}
	return nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
