// Command conformance drives the kit for the tests that all kits share: it reads JSON requests,
// does each on its own, and writes a line of JSON with what came of it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

type object map[string]any

// arguments are those of all verbs.
type arguments struct {
	As, On, Of, Path, Capability, Method, To, Body, Text, Label, Agent string
	RequestID, CoalescingKey, StreamID, Token, Error, Mode             string
	Timeout, Delay, TTL, OrphanGrace                                   float64
	InReplyTo, QuestionID                                              id
	Window, WindowBytes                                                uint32
	Multi, Permanent                                                   bool
	Options, Choices                                                   []string
	Entries                                                            []*hivev1.PublishedLooseEnd
	Request                                                            json.RawMessage
	After                                                              struct {
		LogID    string
		Sequence id
	}
}

// id is a number that may come as a string, as those of 64 bits do in the JSON of protobuf.
type id uint64

func (n *id) UnmarshalJSON(text []byte) error {
	_, err := fmt.Sscan(strings.Trim(string(text), `"`), (*uint64)(n))
	return err
}

// message is a message of the contract, which answers have in the JSON of protobuf.
type message struct{ proto.Message }

func (m message) MarshalJSON() ([]byte, error) { return protojson.Marshal(m.Message) }

// objects has what verbs have made by its name, and what cancels a request by its id.
var objects sync.Map

func get[T any](name string) T {
	found, _ := objects.Load(name)
	typed, _ := found.(T)
	return typed
}

func main() {
	write(object{"kit": "go", "version": hive.Version})
	for input := json.NewDecoder(os.Stdin); input.More(); {
		var request struct {
			ID   json.RawMessage
			Verb string
			Args arguments
		}
		if err := input.Decode(&request); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if timeout := request.Args.Timeout; timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, seconds(timeout))
		}
		objects.Store(string(request.ID), cancel)
		go func() {
			ok, err := do(ctx, request.Verb, &request.Args)
			if sent, isMessage := ok.(proto.Message); isMessage {
				ok = message{sent}
			}
			answer := object{"id": request.ID, "ok": ok}
			if err != nil {
				answer = object{"id": request.ID, "error": failure(err)}
			}
			write(answer)
		}()
	}
}

// failures are the errors of handlers, by their mode.
var failures = map[string]error{
	"fail":      errors.New("handler failed"),
	"fail long": errors.New(strings.Repeat("handler failed", 1000)),
}

// write writes a line at once, so that lines do not mix.
func write(line object) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		panic(err)
	}
}

func failure(err error) object {
	e := hive.FromError(err)
	return object{"code": hive.CodeName(e.Code), "reason": e.Reason, "message": e.Message,
		"metadata": e.Metadata, "fields": e.Fields, "retryAfter": e.RetryAfter.Seconds()}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func do(ctx context.Context, verb string, a *arguments) (any, error) {
	on, to := get[*hive.Hive](a.On), hive.Recipient(a.To)
	mail, delivery := get[*hive.Mail](a.Of), get[*hive.Delivery](a.Of+" "+a.Token)
	switch verb {
	case "connect":
		h, err := hive.Connect(a.Path, &hive.Options{Timeout: seconds(a.Timeout)})
		if err != nil {
			return nil, err
		}
		objects.Store(a.As, h)
	case "close":
		if open := get[io.Closer](cmp.Or(a.On, a.Of)); open != nil {
			return object{}, open.Close()
		}
	case "cancel":
		get[context.CancelFunc](string(a.Request))()
	case "info":
		return on.Info(ctx)
	case "supports":
		supported, err := on.Supports(ctx, a.Capability)
		return object{"supported": supported}, err
	case "call":
		return call(ctx, on, a)
	case "send":
		return on.Send(ctx, to, a.Body,
			&hive.SendOptions{InReplyTo: uint64(a.InReplyTo), RequestID: a.RequestID})
	case "answer":
		return on.Answer(ctx, uint64(a.QuestionID), a.Text,
			&hive.AnswerOptions{Choices: a.Choices, RequestID: a.RequestID})
	case "remind":
		return on.Remind(ctx, a.Body, seconds(a.Delay), &hive.RemindOptions{RequestID: a.RequestID})
	case "wake":
		return on.Wake(ctx, a.Label, a.Body,
			&hive.WakeOptions{CoalescingKey: a.CoalescingKey, RequestID: a.RequestID})
	case "publish":
		return object{}, on.Publish(ctx, a.Label, a.Entries)
	case "ask":
		asked, err := on.Ask(ctx, to, a.Text, &hive.AskOptions{Options: a.Options, Multi: a.Multi,
			TTL: seconds(a.TTL), RequestID: a.RequestID})
		if err != nil {
			return nil, err
		}
		objects.Store(a.As, asked)
		return asked.Question, nil
	case "outcome":
		return get[*hive.Asked](a.Of).Outcome(ctx)
	case "mail":
		objects.Store(a.As, on.Mail(context.Background(), &hive.MailOptions{Window: a.Window,
			WindowBytes: a.WindowBytes, OrphanGrace: seconds(a.OrphanGrace), StreamID: a.StreamID}))
	case "follow":
		after := hive.Position{LogID: a.After.LogID, Sequence: uint64(a.After.Sequence)}
		ctx, stop := context.WithCancel(context.Background())
		pull, _ := iter.Pull2(on.Follow(ctx, &hive.FollowOptions{After: after, Agent: a.Agent}))
		objects.Store(a.As, &follower{pull, stop})
	case "next":
		if mail == nil {
			return get[*follower](a.Of).next(ctx)
		}
		next, err := mail.Next(ctx)
		if err == io.EOF {
			return object{"end": true}, nil
		} else if err != nil {
			return nil, err
		}
		objects.Store(a.Of+" "+next.Token, next)
		return object{"token": next.Token, "attempt": next.Attempt,
			"message": message{next.Message}, "delivery": message{next.Delivery}}, nil
	case "ack":
		return settled(delivery.Ack(ctx))
	case "nack":
		return settled(delivery.Nack(ctx, errors.New(a.Error), a.Permanent))
	case "release":
		return settled(delivery.Release(ctx))
	case "lost":
		select {
		case <-delivery.Context().Done():
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	case "each":
		var begun, done, cancelled atomic.Int64
		objects.Store(a.As, func() object {
			return object{"begun": begun.Load(), "done": done.Load(), "cancelled": cancelled.Load()}
		})
		return object{}, mail.Each(func(ctx context.Context, _ *hive.Delivery) error {
			begun.Add(1)
			if a.Mode == "hang" {
				<-ctx.Done()
				cancelled.Add(1)
				return ctx.Err()
			}
			done.Add(1)
			return failures[a.Mode]
		})
	case "handled":
		return get[func() object](a.Of)(), nil
	default:
		return nil, fmt.Errorf("%q is no verb", verb)
	}
	return object{}, nil
}

// call makes a call of the contract, where messages have the names of their methods.
func call(ctx context.Context, h *hive.Hive, a *arguments) (any, error) {
	name, find := "hive.v1."+path.Base(a.Method), protoregistry.GlobalTypes.FindMessageByURL
	input, inputErr := find(name + "Request")
	output, outputErr := find(name + "Response")
	if err := errors.Join(inputErr, outputErr); err != nil {
		return nil, err
	}
	request, response := input.New().Interface(), output.New().Interface()
	if err := protojson.Unmarshal(a.Request, request); err != nil {
		return nil, err
	}
	return response, h.Invoke(ctx, "/hive.v1."+a.Method, request, response)
}

func settled(state hivev1.DeliveryState, err error) (any, error) {
	return object{"state": state.String()}, err
}

// follower pulls the steps of a follow, one at a time.
type follower struct {
	pull func() (hive.Step, error, bool)
	stop context.CancelFunc
}

func (f *follower) Close() error {
	f.stop()
	return nil
}

func (f *follower) next(ctx context.Context) (any, error) {
	defer context.AfterFunc(ctx, f.stop)() // only the end of a follow ends its wait
	step, err, _ := f.pull()
	switch step := step.(type) {
	case hive.Fact:
		return object{"fact": message{step.Event}, "position": at(step.Position)}, nil
	case hive.Gap:
		return object{"gap": true, "position": at(step.Position)}, nil
	case hive.LogChanged:
		return object{"logChanged": true, "position": at(step.Position)}, nil
	}
	if errors.Is(err, context.Canceled) {
		err = status.FromContextError(ctx.Err()).Err() // nil if it was closed
	}
	return object{"end": true}, err
}

func at(p hive.Position) object {
	return object{"logId": p.LogID, "sequence": fmt.Sprint(p.Sequence)}
}
