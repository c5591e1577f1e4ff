//! Running one case: a broker of its own, a path to each socket, and the steps in order.
//!
//! Invariant: a case leaves nothing behind, and says of a failure which step it was.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use hive_tests::rig::Rig;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::transport::Channel;

use crate::kit::Kit;
use crate::path::Way;
use crate::pattern::Variables;
use crate::scripted::Scripted;
use crate::suite::{Action, Case, Fault, Step};
use crate::task::Task;
use crate::wire::{self, Outcome, Stream};

/// The sockets of a hive, and who is behind them.
struct Hive {
    rig: Rig,
    scripted: Option<Scripted>,
    ways: BTreeMap<String, Arc<Way>>,
    channels: HashMap<String, Channel>,
}

/// A case that runs.
struct Running {
    hive: Hive,
    kit: Option<Arc<Kit>>,
    /// The objects of the kit that this case has made, by socket.
    connected: HashMap<String, String>,
    /// What the names of the kit's objects begin with: those of other cases differ.
    prefix: String,
    variables: Variables,
    streams: HashMap<String, Stream>,
    /// Errors of `follow`, by the names of its objects: some kits wait there until the log is
    /// followed, others fail at the first `next`.
    refused: HashMap<String, Value>,
    background: HashMap<String, (Step, u64, Task<Result<Outcome>>)>,
}

/// Runs a case, on the wire or through a kit.
pub(crate) async fn case(
    case: &Case,
    kit: Option<Arc<Kit>>,
    number: usize,
    programs: Option<PathBuf>,
) -> Result<()> {
    let hive = Hive::start(case, programs).await?;
    let mut running = Running {
        hive,
        kit,
        connected: HashMap::new(),
        prefix: format!("{number}:"),
        variables: Variables::default(),
        streams: HashMap::new(),
        refused: HashMap::new(),
        background: HashMap::new(),
    };
    let mut result = Ok(());
    for (index, step) in case.steps.iter().enumerate() {
        result = running.repeated(step).await.with_context(|| format!("step {}", index + 1));
        if result.is_err() {
            break;
        }
    }
    running.background.clear();
    if let Some(kit) = &running.kit {
        for object in running.connected.values() {
            // It may be closed already.
            let _ =
                timeout(Duration::from_secs(15), kit.does("close", json!({"on": object}))).await;
        }
    }
    let faults = running.hive.scripted.as_ref().map(Scripted::faults).unwrap_or_default();
    result?;
    ensure!(faults.is_empty(), "the scripted broker: {}", faults.join("; "));
    Ok(())
}

impl Hive {
    async fn start(case: &Case, programs: Option<PathBuf>) -> Result<Self> {
        let mut rig = Rig::new(&case.config);
        if let Some(programs) = programs {
            rig = rig.with_programs(&programs);
        }
        let mut ways = BTreeMap::new();
        let mut scripted = None;
        if case.script.is_empty() {
            rig.start_broker().await;
        } else {
            let target = rig.path("scripted.sock");
            let way = Arc::new(Way::open(rig.path("ada.way"), target.clone())?);
            scripted = Some(Scripted::serve(case.script.clone(), &target, Arc::clone(&way))?);
            ways.insert("ada".to_owned(), way);
        }
        Ok(Self { rig, scripted, ways, channels: HashMap::new() })
    }

    /// Returns the path to a socket.
    fn way(&mut self, actor: &str) -> Result<Arc<Way>> {
        if let Some(way) = self.ways.get(actor) {
            return Ok(Arc::clone(way));
        }
        ensure!(!actor.is_empty(), "the step has no `as`");
        ensure!(self.scripted.is_none(), "a scripted broker has the socket of ada only");
        let target = match actor {
            "operator" => self.rig.operator_socket(),
            agent => self.rig.agent_socket(agent),
        };
        let way = Arc::new(Way::open(self.rig.path(format!("{actor}.way")), target)?);
        self.ways.insert(actor.to_owned(), Arc::clone(&way));
        Ok(way)
    }

    /// Returns the channel of calls on the wire.
    fn channel(&mut self, actor: &str) -> Result<Channel> {
        if let Some(channel) = self.channels.get(actor) {
            return Ok(channel.clone());
        }
        let channel = wire::channel(self.way(actor)?.socket())?;
        self.channels.insert(actor.to_owned(), channel.clone());
        Ok(channel)
    }

    fn backup(&self) -> PathBuf {
        self.rig.path("backup.db")
    }

    async fn fault(&mut self, fault: &Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.rig.kill_broker().await,
            Fault::Stop => self.rig.stop_broker().await,
            Fault::Start => self.rig.start_broker().await,
            Fault::Hold(actor) => self.way(actor)?.hold(),
            Fault::Release(actor) => self.way(actor)?.release(),
            Fault::Cut(actor) => self.way(actor)?.cut(),
            Fault::Refuse(actor) => self.way(actor)?.refuse(),
            Fault::Backup => self.ctl(&["backup", &self.backup().to_string_lossy()]).await?,
            Fault::Restore => {
                let config = self.rig.path("hive.toml");
                let state = self.rig.path("state");
                let [config, state, backup] =
                    [config, state, self.backup()].map(|path| path.to_string_lossy().into_owned());
                self.ctl(&["restore", "--config", &config, "--state-dir", &state, &backup]).await?;
            }
        }
        Ok(())
    }

    async fn ctl(&self, words: &[&str]) -> Result<()> {
        let mut command =
            tokio::process::Command::new(hive_tests::binary::find("hivectl", "hivectl"));
        command.env("HIVE_SOCKET", self.rig.operator_socket()).args(words);
        let output = command.output().await?;
        ensure!(
            output.status.success(),
            "hivectl {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

impl Running {
    async fn repeated(&mut self, step: &Step) -> Result<()> {
        for number in 1..=step.repeat {
            self.variables.bind("n", json!(number));
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        let request = self.variables.filled(&step.request).map_err(|fault| anyhow!(fault))?;
        let outcome = match &step.action {
            Action::Fault(fault) => {
                let fault = self.hive.fault(fault);
                return timeout(step.within, fault).await.context("the fault takes too long")?;
            }
            Action::Await(name) => {
                let found = self.background.remove(name);
                let found = found.with_context(|| format!("no step has the name {name}"))?;
                let (_, _, mut task) = found;
                let result = timeout(step.within, task.result()).await;
                result.with_context(|| format!("{name} has not ended"))???
            }
            Action::Until(method) => return self.until(step, method, &request).await,
            Action::Call(method) if self.kit.is_none() || step.wire => {
                let channel = self.hive.channel(&step.actor)?;
                let (method, metadata) = (method.clone(), self.metadata(step)?);
                let call = async move { wire::call(channel, &method, &request, &metadata).await };
                match self.begin(step, 0, call).await? {
                    Some(outcome) => outcome,
                    None => return Ok(()),
                }
            }
            Action::Call(method) => {
                let args = json!({"method": method, "request": request});
                match self.verb(step, "call", args).await? {
                    Some(outcome) => outcome,
                    None => return Ok(()),
                }
            }
            Action::Do(verb) if verb == "next" && self.refused.contains_key(&step.of) => {
                Err(self.refused.remove(&step.of).unwrap_or_default())
            }
            Action::Do(verb) => match self.verb(step, verb, request).await? {
                Some(Err(refused)) if verb == "follow" => {
                    self.refused.insert(step.of.clone(), refused);
                    return Ok(());
                }
                Some(outcome) => outcome,
                None => return Ok(()),
            },
            Action::Open(method) => {
                let channel = self.hive.channel(&step.actor)?;
                let stream = Stream::open(channel, method, &request, &self.metadata(step)?)?;
                self.streams.insert(step.of.clone(), stream);
                return Ok(());
            }
            Action::Drop => {
                self.streams.remove(&step.of);
                return Ok(());
            }
            Action::Write(message) => {
                let message = self.variables.filled(message).map_err(|fault| anyhow!(fault))?;
                return self.opened(step)?.write(&message);
            }
            Action::End => {
                self.opened(step)?.end();
                return Ok(());
            }
            Action::Read => {
                let read = timeout(step.within, self.opened(step)?.read()).await;
                read.context("no message came")??
            }
        };
        self.check(step, outcome)
    }

    /// Returns the metadata of a step, with the variables in their places.
    fn metadata(&self, step: &Step) -> Result<wire::Metadata> {
        let filled = |(key, value): (&String, &String)| {
            let value = self.variables.filled(&json!(value)).map_err(|fault| anyhow!(fault))?;
            Ok((key.clone(), value.as_str().context("metadata is text")?.to_owned()))
        };
        step.metadata.iter().map(filled).collect()
    }

    /// Returns a stream of the wire.
    fn opened(&mut self, step: &Step) -> Result<&mut Stream> {
        let found = self.streams.get_mut(&step.of);
        found.with_context(|| format!("no stream has the name {:?}", step.of))
    }

    /// Does a verb of the kit.
    async fn verb(&mut self, step: &Step, verb: &str, mut args: Value) -> Result<Option<Outcome>> {
        let kit = Arc::clone(self.kit.as_ref().context("the step is for kits only")?);
        if verb == "cancel" {
            let name = args.get("step").and_then(Value::as_str).unwrap_or_default().to_owned();
            let found = self.background.get(&name);
            let (_, number, _) = found.with_context(|| format!("no step has the name {name}"))?;
            args = json!({"request": number});
        } else {
            let object = format!("{}{}", self.prefix, step.of);
            match verb {
                "connect" => {
                    let named = args.get("path").is_some();
                    if !named {
                        let way = self.hive.way(&step.actor)?;
                        args["path"] = json!(way.socket());
                    }
                    args["as"] = json!(format!("{}{}", self.prefix, step.actor));
                    self.connected
                        .insert(step.actor.clone(), format!("{}{}", self.prefix, step.actor));
                }
                "mail" | "follow" | "ask" => {
                    args["on"] = json!(self.object(&step.actor).await?);
                    args["as"] = json!(object);
                }
                "each" => {
                    args["as"] = json!(format!("{object}:each"));
                    args["of"] = json!(object);
                }
                "handled" => args["of"] = json!(format!("{object}:each")),
                _ if step.of.is_empty() => args["on"] = json!(self.object(&step.actor).await?),
                _ => args["of"] = json!(object),
            }
        }
        let number = kit.number();
        let asked = kit.ask(number, verb, args).await?;
        self.begin(step, number, asked.outcome()).await
    }

    /// Returns the kit's client of a socket.
    async fn object(&mut self, actor: &str) -> Result<String> {
        if let Some(object) = self.connected.get(actor) {
            return Ok(object.clone());
        }
        let object = format!("{}{actor}", self.prefix);
        let socket = self.hive.way(actor)?.socket().to_owned();
        let kit = self.kit.as_ref().context("the step is for kits only")?;
        let connected = kit.does("connect", json!({"as": object, "path": socket})).await?;
        connected.map_err(|error| anyhow!("the kit did not connect: {error}"))?;
        self.connected.insert(actor.to_owned(), object.clone());
        Ok(object)
    }

    /// Waits for what a step does, or lets it run in the background.
    async fn begin(
        &mut self,
        step: &Step,
        number: u64,
        call: impl Future<Output = Result<Outcome>> + Send + 'static,
    ) -> Result<Option<Outcome>> {
        if step.background.is_empty() {
            let outcome = timeout(step.within, call).await;
            return Ok(Some(outcome.context("it has not ended in time")??));
        }
        let task = Task::start(call);
        self.background.insert(step.background.clone(), (step.clone(), number, task));
        Ok(None)
    }

    /// Makes a call on the wire until it has the expected answer.
    async fn until(&mut self, step: &Step, method: &str, request: &Value) -> Result<()> {
        let (channel, metadata) = (self.hive.channel(&step.actor)?, self.metadata(step)?);
        let mut last = anyhow!("there was no answer");
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        let looking = async {
            loop {
                ticks.tick().await;
                let outcome = wire::call(channel.clone(), method, request, &metadata).await?;
                match self.check(step, outcome) {
                    Ok(()) => return Ok(()),
                    Err(fault) => last = fault,
                }
            }
        };
        match timeout(step.within, looking).await {
            Ok(looked) => looked,
            Err(_) => Err(last.context("it did not come to this")),
        }
    }

    fn check(&mut self, step: &Step, outcome: Outcome) -> Result<()> {
        let (wanted, found) = match (&step.error, outcome) {
            (Some(wanted), Err(error)) => (wanted.clone(), error),
            (Some(wanted), Ok(answer)) => bail!("it succeeded with {answer}, not with {wanted}"),
            (None, Err(error)) => bail!("it failed: {error}"),
            (None, Ok(answer)) => match &step.expect {
                Some(wanted) => (wanted.clone(), answer),
                None => return Ok(()),
            },
        };
        let matched = self.variables.matches(&wanted, &found, step.unordered);
        matched.map_err(|fault| anyhow!("{fault} (the whole: {found})"))
    }
}
