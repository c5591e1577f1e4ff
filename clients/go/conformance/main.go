// Command conformance drives the kit for the tests that all kits share: it reads one JSON request
// per line, handles each on its own, and writes one JSON answer per line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"example.invalid/hive/clients/go"
)

// arguments are those of all verbs.
type arguments struct {
	As, On, Of, To, Body, Method, Text, Label, Capability, Agent, StreamID, Token, Error, Mode string
	Program, RequestID, CoalescingKey                                                          string
	Path                                                                                       *string
	Timeout, Delay, TTL, OrphanGrace                                                           float64
	InReplyTo, QuestionID                                                                      id
	Request                                                                                    json.RawMessage
	Options, Choices                                                                           []string
	Entries                                                                                    []json.RawMessage
	Multi, Permanent                                                                           bool
	Window, WindowBytes                                                                        uint32
	After                                                                                      *position
}

// id is a number that may come as a string, as 64-bit numbers do in JSON of protobuf.
type id uint64

func (n *id) UnmarshalJSON(text []byte) error {
	_, err := fmt.Sscan(string(trim(text)), (*uint64)(n))
	return err
}

func trim(text []byte) []byte {
	if len(text) > 1 && text[0] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}

type position struct {
	LogID    string `json:"logId"`
	Sequence id     `json:"sequence"`
}

func (p position) MarshalJSON() ([]byte, error) {
	return json.Marshal(object{"logId": p.LogID, "sequence": fmt.Sprint(uint64(p.Sequence))})
}

type object map[string]any

// driver has the objects that verbs have made, by their names.
type driver struct {
	mu      sync.Mutex
	objects map[string]any
	out     *json.Encoder
}

func get[T any](d *driver, name string) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, _ := d.objects[name].(T)
	return found
}

// put keeps a value under a name, unless there was an error.
func (d *driver) put(name string, value any, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.objects[name] = value
	}
	return err
}

func (d *driver) say(answer object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.Encode(answer)
}

func (d *driver) handle(ctx context.Context, number json.RawMessage, verb string, a *arguments) {
	ok, err := d.run(ctx, verb, a)
	if err == nil {
		if message, isProto := ok.(proto.Message); isProto {
			ok = wire(message)
		}
		d.say(object{"id": number, "ok": ok})
		return
	}
	e := hive.FromError(err)
	facts, fields := map[string]string{}, []object{}
	maps.Copy(facts, e.Metadata)
	for _, field := range e.Fields {
		fields = append(fields, object{"field": field.Field, "description": field.Description})
	}
	said := object{"code": hive.CodeName(e.Code), "reason": e.Reason, "message": e.Message,
		"metadata": facts, "fields": fields}
	if e.RetryAfter > 0 {
		said["retryAfter"] = e.RetryAfter.Seconds()
	}
	d.say(object{"id": number, "error": said})
}

func wire(message proto.Message) json.RawMessage {
	text, err := protojson.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	d := &driver{objects: map[string]any{}, out: json.NewEncoder(os.Stdout)}
	d.say(object{"kit": "go", "version": hive.Version})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var request struct {
			ID   json.RawMessage
			Verb string
			Args arguments
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			fmt.Fprintln(os.Stderr, "conformance:", err)
			os.Exit(2)
		}
		ctx, cancel := context.WithCancel(context.Background())
		d.put("cancel "+string(request.ID), cancel, nil)
		go d.handle(ctx, request.ID, request.Verb, &request.Args)
	}
	d.closeAll()
}

// closeAll closes mails before the connections that they need.
func (d *driver) closeAll() {
	d.mu.Lock()
	made := maps.Clone(d.objects)
	d.mu.Unlock()
	var mails sync.WaitGroup
	for _, object := range made {
		if mail, ok := object.(*consumer); ok {
			mails.Add(1)
			go func() { defer mails.Done(); mail.Close() }()
		}
	}
	mails.Wait()
	for _, object := range made {
		shut(object)
	}
}
