//! Namespaces: a real hived recognises an agent's programs by the pid namespace that its supervisor
//! has described.
//!
//! What it is not: the sandbox itself, which `hivectl up` makes. Here `unshare` makes pid
//! namespaces, and the test sends what `up` would. Invariant: each peer runs in a process of its
//! own, so the kernel and nothing else says where it is.

mod hive;
mod inside;

use hive_proto::supervisor::{Reached, ToBroker, ToUp};
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::{
    AttachResponse, Attached, BeginTurnRequest, GetBrokerStatusRequest, Isolation,
    ReplaceLooseEndsRequest, WakeRequest,
};
use hive_proto::{PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY};
use hive_tests::rig::{fresh_id, process_token, request};
use prost::Message;
use rustix::process::Signal;

use crate::hive::{ATTACH, GET_SELF, GET_SERVER_INFO, GET_STATUS, Hive, Peer, is_untrusted};

const WAKE: &str = "/hive.v1.WakeService/Wake";
const PUBLISH: &str = "/hive.v1.LooseEndService/ReplaceLooseEnds";
const SEND: &str = "/hive.v1.MessageService/SendMessage";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// A message as an order has it.
fn digits(message: &impl Message) -> String {
    message.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wake() -> WakeRequest {
    request::wake("ci", "the build is green")
}

#[tokio::test]
async fn the_place_of_a_program_decides_its_calls() {
    let Some(hive) = Hive::new().await else { return };
    let (mut ada, mut bob, mut host) =
        (Peer::sandboxed().await, Peer::sandboxed().await, Peer::on_host().await);
    hive.confine("ada", &ada).await;
    hive.confine("bob", &bob).await;
    hive.complete().await;
    let (of_ada, of_bob, operator) =
        (hive.rig.agent_socket("ada"), hive.rig.agent_socket("bob"), hive.rig.operator_socket());
    // In its own sandbox an agent may call everything, and from below it little.
    for (peer, own, other) in [(&mut ada, &of_ada, &of_bob), (&mut bob, &of_bob, &of_ada)] {
        assert_eq!(peer.call(own, GET_SELF).await, "ok");
        assert_eq!(peer.call(own, GET_SERVER_INFO).await, "ok");
        for rpc in [GET_SERVER_INFO, HEALTH] {
            assert_eq!(peer.call_below(own, rpc).await, "ok", "{rpc}");
        }
        for rpc in [GET_SELF, ATTACH, SEND] {
            let said = peer.call_below(own, rpc).await;
            assert!(is_untrusted(&said) && said.contains("only the harness of "), "{rpc}: {said}");
        }
        // On another's socket, and on the operator's, it may call nothing.
        for rpc in [GET_SELF, GET_SERVER_INFO, WAKE, HEALTH] {
            for said in [peer.call(other, rpc).await, peer.call_below(other, rpc).await] {
                assert!(
                    is_untrusted(&said) && said.contains("does not run in the sandbox of "),
                    "{rpc}: {said}"
                );
            }
        }
        for said in
            [peer.call(&operator, GET_STATUS).await, peer.call_below(&operator, GET_STATUS).await]
        {
            assert!(is_untrusted(&said) && said.contains("runs in an agent's sandbox"), "{said}");
        }
    }
    // The host wakes and publishes.
    assert_eq!(host.call(&operator, GET_STATUS).await, "ok");
    assert_eq!(host.call(&of_ada, GET_SERVER_INFO).await, "ok");
    for rpc in [GET_SELF, ATTACH] {
        let said = host.call(&of_ada, rpc).await;
        assert!(is_untrusted(&said), "{rpc}: {said}");
    }
    // A container of the operator's is no sandbox of an agent.
    assert_eq!(host.call_below(&operator, GET_STATUS).await, "ok");
    let said = host.call_below(&of_ada, GET_SERVER_INFO).await;
    assert!(is_untrusted(&said), "{said}");
}

#[tokio::test]
async fn a_shell_task_wakes_and_publishes_and_its_tokens_count_for_nothing() {
    let Some(hive) = Hive::new().await else { return };
    let mut ada = Peer::sandboxed().await;
    hive.confine("ada", &ada).await;
    hive.complete().await;
    let socket = hive.rig.agent_socket("ada").display().to_string();
    let order = |rpc: &str, message: &str| format!("below call {socket} {rpc} ={message}");
    assert_eq!(ada.order(&order(WAKE, &digits(&wake()))).await, "ok");
    let publish = ReplaceLooseEndsRequest {
        request_id: fresh_id(),
        label: "ci".to_owned(),
        ..ReplaceLooseEndsRequest::default()
    };
    assert_eq!(ada.order(&order(PUBLISH, &digits(&publish))).await, "ok");
    let stolen = format!("{} {SESSION_TOKEN_KEY}=a-stolen-token", order(WAKE, &digits(&wake())));
    let said = ada.order(&stolen).await;
    assert!(
        is_untrusted(&said)
            && said.contains("a session token counts only from the agent's own harness"),
        "{said}"
    );
    let operator = hive.rig.operator().await;
    assert_eq!(operator.all_deliveries("ada").await.len(), 1, "one wake");
    // The harness begins a turn for it.
    let own = |rpc: &str, message: &str| format!("call {socket} {rpc} ={message}");
    assert_eq!(ada.order(&own(ATTACH, "")).await, "ok");
    let attached = AttachResponse::decode(inside::bytes(&ada.order("answer").await).as_slice())
        .expect("it is attached");
    let Some(Step::Attached(Attached { session_token, .. })) = attached.step else {
        panic!("{attached:?}")
    };
    let token = process_token();
    let begin = BeginTurnRequest { process_token: token.clone(), ..request::begin() };
    let begin = own("/hive.v1.TurnService/BeginTurn", &digits(&begin));
    let said = ada.order(&format!("{begin} {SESSION_TOKEN_KEY}={session_token}")).await;
    assert_eq!(said, "ok");
    let token = format!("{PROCESS_TOKEN_KEY}={token}");
    // With the token of that turn a task is still a task.
    let send = |body: &str| request::send("bob", body);
    let said = ada.order(&format!("{} {token}", order(SEND, &digits(&send("forged"))))).await;
    assert!(is_untrusted(&said), "{said}");
    assert_eq!(ada.order(&format!("{} {token}", own(SEND, &digits(&send("true"))))).await, "ok");
    let mail = operator.all_deliveries("bob").await;
    assert_eq!(mail.len(), 1, "{mail:?}");
}

#[tokio::test]
async fn a_new_sandbox_cuts_the_earlier_one_off() {
    let Some(hive) = Hive::new().await else { return };
    let (mut earlier, mut present) = (Peer::sandboxed().await, Peer::sandboxed().await);
    hive.confine("ada", &earlier).await;
    hive.complete().await;
    let socket = hive.rig.agent_socket("ada");
    assert_eq!(earlier.order(&format!("call {} {ATTACH} =", socket.display())).await, "ok");
    hive.confine("ada", &present).await;
    let ended = earlier.order("end").await;
    assert!(ended.starts_with("ended ") && !ended.contains("ok"), "{ended}");
    assert_eq!(present.call(&socket, GET_SELF).await, "ok");
    for (target, rpc) in
        [(&socket, GET_SELF), (&socket, WAKE), (&hive.rig.operator_socket(), GET_STATUS)]
    {
        let said = earlier.call(target, rpc).await;
        assert!(is_untrusted(&said), "{rpc}: {said}");
    }
    // With the end of the harness the host is left.
    assert_eq!(hive.tell(ToBroker::Gone { agent: "ada".to_owned() }, None).await, ToUp::Done);
    let said = present.call(&socket, GET_SELF).await;
    assert!(is_untrusted(&said) && said.contains("runs no harness of `ada`"), "{said}");
    assert_eq!(Peer::on_host().await.call(&socket, GET_SERVER_INFO).await, "ok");
}

#[tokio::test]
async fn an_unconfined_agent_is_known_by_its_user() {
    let Some(hive) = Hive::new().await else { return };
    let (mut ada, mut host) = (Peer::sandboxed().await, Peer::on_host().await);
    hive.confine("ada", &ada).await;
    assert_eq!(hive.tell(ToBroker::Unconfined { agent: "bob".to_owned() }, None).await, ToUp::Done);
    hive.complete().await;
    for peer in [&mut host, &mut ada] {
        assert_eq!(peer.call(&hive.rig.agent_socket("bob"), GET_SELF).await, "ok");
    }
}

#[tokio::test]
async fn after_a_restart_agents_wait_until_all_sandboxes_are_described() {
    let Some(mut hive) = Hive::new().await else { return };
    let (mut ada, mut host) = (Peer::sandboxed().await, Peer::on_host().await);
    let (socket, operator) = (hive.rig.agent_socket("ada"), hive.rig.operator_socket());
    for restart in [false, true] {
        if restart {
            hive.rig.kill_broker().await;
            hive.start().await;
        }
        for said in [ada.call(&socket, GET_SELF).await, host.call(&socket, GET_SERVER_INFO).await] {
            assert!(said.starts_with("Unavailable STARTING later: "), "{said}");
        }
        hive.confine("ada", &ada).await;
        let said = ada.call(&socket, GET_SELF).await;
        assert!(
            said.starts_with("Unavailable STARTING later: "),
            "not before all are described: {said}"
        );
        // The operator is there from the beginning; what may be a sandbox is not the operator.
        assert_eq!(host.call(&operator, GET_STATUS).await, "ok");
        let said = host.call_below(&operator, GET_STATUS).await;
        assert!(said.starts_with("Unavailable STARTING later: "), "{said}");
        hive.complete().await;
        assert_eq!(ada.call(&socket, GET_SELF).await, "ok");
        assert_eq!(host.call_below(&operator, GET_STATUS).await, "ok");
    }
}

#[tokio::test]
async fn a_process_that_ended_after_it_connected_is_not_trusted() {
    let Some(mut hive) = Hive::new().await else { return };
    hive.complete().await;
    for (socket, rpc) in
        [(hive.rig.agent_socket("ada"), GET_SERVER_INFO), (hive.rig.operator_socket(), GET_STATUS)]
    {
        // While the broker is stopped the connection waits, and the process that made it ends.
        hive.rig.broker().suspend().await;
        let mut ghost = Peer::ghost();
        ghost.write(&format!("{} {rpc}", socket.display())).await;
        ghost.ended().await;
        hive.rig.broker().signal(Signal::CONT);
        let said = ghost.said().await;
        assert!(
            is_untrusted(&said) && said.contains("the process that connected has ended"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn without_its_supervisor_the_broker_trusts_no_new_process() {
    let Some(mut hive) = Hive::new().await else { return };
    let mut ada = Peer::sandboxed().await;
    hive.confine("ada", &ada).await;
    hive.complete().await;
    hive.unlink();
    hive.rig.broker().says("hivectl up has left the broker").await;
    assert_eq!(ada.call(&hive.rig.agent_socket("ada"), GET_SELF).await, "ok");
    let said = Peer::sandboxed().await.call(&hive.rig.agent_socket("bob"), GET_SELF).await;
    assert!(is_untrusted(&said), "{said}");
    // Started again and left before the end, it says what to do.
    hive.rig.kill_broker().await;
    hive.start().await;
    hive.unlink();
    hive.rig.broker().says_times("hivectl up has left the broker", 2).await;
    let said = ada.call(&hive.rig.agent_socket("ada"), GET_SELF).await;
    assert!(said.contains("start `hivectl up` again"), "{said}");
}

#[tokio::test]
async fn packets_that_make_no_sense_are_refused_with_the_reason() {
    let Some(hive) = Hive::new().await else { return };
    let (ada, bob) = (Peer::sandboxed().await, Peer::sandboxed().await);
    let sandbox = |agent: &str| ToBroker::Sandbox { agent: agent.to_owned() };
    let open = |path: &str| Some(std::fs::File::open(path).expect("it is there").into());
    hive.confine("ada", &ada).await;
    for (packet, descriptor, wanted) in [
        (sandbox("bob"), None, "no descriptor"),
        (sandbox("bob"), open("/dev/null"), "is of no pid namespace"),
        (sandbox("bob"), open("/proc/self/ns/mnt"), "is of no pid namespace"),
        (sandbox("bob"), open("/proc/self/ns/pid"), "is the broker's own"),
        (sandbox("bob"), Some(ada.namespace()), "is that of `ada`"),
        (sandbox("No Name"), Some(bob.namespace()), "is no name"),
        (ToBroker::Complete, open("/dev/null"), "carries a descriptor"),
    ] {
        let answer = hive.tell(packet.clone(), descriptor).await;
        assert!(
            matches!(&answer, ToUp::Refused { why } if why.contains(wanted)),
            "{packet:?}: {answer:?}"
        );
    }
    let early = hive.report("bob", Reached::Sandbox, &[], true).await;
    assert!(
        matches!(&early, ToUp::Refused { why } if why.contains("send `sandbox` or `unconfined` first")),
        "{early:?}"
    );
    hive.confine("bob", &bob).await;
}

#[tokio::test]
async fn an_isolation_is_shown_as_it_was_reached() {
    let Some(hive) = Hive::new().await else { return };
    let (mut ada, mut bob) = (Peer::sandboxed().await, Peer::sandboxed().await);
    hive.confine("ada", &ada).await;
    hive.confine("bob", &bob).await;
    hive.complete().await;
    for (peer, agent) in [(&mut ada, "ada"), (&mut bob, "bob")] {
        let socket = hive.rig.agent_socket(agent);
        assert_eq!(peer.order(&format!("call {} {ATTACH} =", socket.display())).await, "ok");
    }
    let operator = hive.rig.operator().await;
    let status = async || {
        let mut admin = AdminServiceClient::new(operator.channel());
        let status = admin
            .get_broker_status(GetBrokerStatusRequest {})
            .await
            .expect("a status")
            .into_inner();
        (
            status.not_isolated_agents,
            status.partly_isolated_agents,
            status.isolation_accepted_agents,
        )
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        operator.get_agent("ada").await.isolation(),
        Isolation::None,
        "nothing was reported"
    );
    assert_eq!(status().await, (names(&["ada", "bob"]), names(&[]), names(&[])));
    let note = "the socket @/tmp/.X11-unix/X0 can be reached";
    assert_eq!(hive.report("ada", Reached::Partly, &[note], false).await, ToUp::Done);
    assert_eq!(hive.report("bob", Reached::Sandbox, &[], true).await, ToUp::Done);
    let shown = operator.get_agent("ada").await;
    assert_eq!((shown.isolation(), shown.isolation_notes), (Isolation::Partly, names(&[note])));
    assert_eq!(operator.get_agent("bob").await.isolation(), Isolation::Sandbox);
    assert_eq!(status().await, (names(&[]), names(&["ada"]), names(&["bob"])));
    let said = hive.rig.hivectl(&["status"]).await;
    assert!(
        said.code == 8
            && said.stdout.contains("ada is PARTLY ISOLATED")
            && !said.stdout.contains("bob is"),
        "{said:?}"
    );
    let said = hive.rig.hivectl(&["agent", "show", "ada"]).await;
    assert!(said.stdout.contains("PARTLY ISOLATED") && said.stdout.contains(note), "{said:?}");
    let said = hive.rig.hivectl(&["agent", "show", "bob"]).await;
    assert!(said.stdout.contains("isolated (sandbox)"), "{said:?}");
    assert_eq!(hive.report("ada", Reached::Partly, &[note], true).await, ToUp::Done);
    let said = hive.rig.hivectl(&["status"]).await;
    assert!(
        said.code == 0 && said.stdout.contains("partly for 1 agent, as the configuration accepts"),
        "{said:?}"
    );
}
