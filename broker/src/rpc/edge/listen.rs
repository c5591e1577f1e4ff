//! Listening: one socket per agent and one for the operator, in step with the agents.
//!
//! A change of one agent costs the same however many there are. Invariant: a socket on which a
//! process answers is never taken from it; only a dead one is replaced. Directories stay when an
//! agent is retired, because a container may have them mounted. Sockets that a supervisor handed
//! over are served, and their files are not changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_core::name::AgentName;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::{Socket, accept};
use super::closing::{Closing, Leaving};
use super::conn::{Conn, Owner, Peers, Trust};
use super::handed::{self, Handed};
pub use super::layout::Layout;
use super::layout::own_uids;
pub use super::listen_error::ListenError;
use super::room::{Room, Seat};
use super::socket_file::{bind, group_id, let_in, make_dir, remove, set_mode};
use super::stored::Stored;
use super::strangers::Strangers;
use crate::engine::sandboxes::Sandboxes;
use crate::files::{self, Shortage};
use crate::service_manager::Inherited;
use crate::spawn::spawn;

/// Accepted connections that wait to be served.
const BACKLOG_CONNECTIONS: usize = 64;

/// The sockets that were open before this broker: for good, or kept from the last one.
#[derive(Debug)]
pub struct Given {
    handed: Handed,
    stored: Stored,
}

impl Given {
    /// Takes the sockets among the descriptors that were handed over; `are_kept`: whether the
    /// service manager keeps those of agents.
    #[must_use]
    pub fn take(inherited: Vec<Inherited>, are_kept: bool, layout: &Layout) -> Self {
        let (stored, others) = Stored::take(inherited, are_kept, layout);
        Self { handed: Handed::take(others), stored }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handed.is_empty() && self.stored.is_empty()
    }
}

/// The listening sockets of a broker.
#[derive(Debug)]
pub struct Sockets {
    layout: Mutex<Layout>,
    agents: mpsc::Sender<Conn>,
    open: Mutex<HashMap<AgentName, OpenSocket>>,
    order: tokio::sync::Mutex<()>,
    /// Connections of retired agents in their last second: a later agent of the name gets none.
    leaving: Leaving,
    handed: Handed,
    stored: Stored,
    room: Room,
    strangers: Arc<Strangers>,
    sandboxes: Arc<Sandboxes>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// An agent's listening socket.
#[derive(Debug)]
struct OpenSocket {
    path: PathBuf,
    trust: Arc<Trust>,
    closing: Closing,
    /// Whether its file is this broker's own, and not a supervisor's.
    own_file: bool,
}

/// The channel of accepted connections: agents' and the operator's.
pub type Incoming = mpsc::Receiver<Conn>;

impl Sockets {
    /// Opens the operator's socket, unless it was handed over.
    pub fn open(
        layout: Layout,
        Given { handed, stored }: Given,
        sandboxes: Arc<Sandboxes>,
        tasks: TaskTracker,
        closing: CancellationToken,
    ) -> Result<(Arc<Self>, Incoming, Incoming), ListenError> {
        make_dir(&layout.runtime_dir, 0o755)?;
        make_dir(&layout.runtime_dir.join("agents"), 0o755)?;
        handed.name_strangers(|path| layout.is_socket(path));
        let (agents, agent_conns) = mpsc::channel(BACKLOG_CONNECTIONS);
        let (operator, operator_conns) = mpsc::channel(BACKLOG_CONNECTIONS);
        let (path, group) = (layout.operator_socket(), layout.socket_group.clone());
        let layout = Mutex::new(layout);
        let sockets = Arc::new(Self {
            layout,
            agents,
            open: Mutex::default(),
            order: tokio::sync::Mutex::default(),
            leaving: Leaving::default(),
            handed,
            stored,
            room: Room::below(files::limit()),
            strangers: Arc::new(Strangers::new()),
            sandboxes,
            tasks,
            closing,
        });
        let listener = listening(sockets.socket(&path)?, &path)?;
        let trust = sockets.protect(&path, group).inspect_err(|_| {
            if !sockets.handed.has(&path) {
                remove(&path);
            }
        })?;
        let closing = Closing::of(&sockets.closing);
        let socket = sockets.of(Owner::Operator, Arc::new(trust));
        spawn(&sockets.tasks, accept(listener, socket, operator, closing, None));
        Ok((sockets, agent_conns, operator_conns))
    }

    fn of(&self, owner: Owner, trust: Arc<Trust>) -> Socket {
        let (sandboxes, strangers) = (Arc::clone(&self.sandboxes), Arc::clone(&self.strangers));
        Socket { owner, trust, sandboxes, strangers }
    }

    /// Gives the operator's socket its mode and group; returns who may use it.
    fn protect(&self, path: &Path, group: Option<String>) -> Result<Trust, ListenError> {
        let is_handed = self.handed.has(path);
        let Some(group) = group else {
            if !is_handed {
                set_mode(path, 0o600)?;
            }
            return Ok(Trust::Peers(Peers { uids: own_uids(), unit: None }));
        };
        let gid = group_id(&group).ok_or_else(|| ListenError::NoSuchGroup(group.clone()))?;
        if is_handed {
            handed::for_group_only(path, &group, gid)?;
        } else {
            let own = |source: io::Error| ListenError::Io { path: path.to_path_buf(), source };
            std::os::unix::fs::chown(path, None, Some(gid)).map_err(own)?;
            set_mode(path, 0o660)?;
        }
        Ok(Trust::FileMode)
    }

    /// Sets the peers of each agent's socket, from the next [`Self::reconcile`] on. The paths of
    /// sockets change with a restart only.
    pub fn set_peers(&self, peers: BTreeMap<AgentName, Peers>) {
        self.lock_layout().peers = peers;
    }

    /// Returns the path of an agent's socket.
    #[must_use]
    pub fn agent_socket(&self, name: &AgentName) -> PathBuf {
        self.lock_layout().agent_socket(name)
    }

    /// Takes the files for the socket of an agent that is to be created; `None` if it has a socket.
    pub fn seat(&self, name: &AgentName) -> Result<Option<Seat>, Shortage> {
        let open = self.lock_open();
        if open.contains_key(name) {
            return Ok(None);
        }
        self.room.seat().map(Some).ok_or_else(|| self.room.shortage(open.len() + 1))
    }

    /// Returns what so many agents lack.
    pub fn shortage(&self, agents: usize) -> Shortage {
        self.room.shortage(agents)
    }

    /// Waits until no other task reads which agents are active to reconcile sockets. Without this a
    /// socket could be closed by an older reading than the one that opened it.
    pub async fn in_order(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Opens missing sockets, and closes those of retired agents, connections included. If the
    /// users of a socket have changed, it is closed and opened again, so that a revoked right ends
    /// at once. If an agent's socket cannot be opened, that is reported, and the others are served.
    pub fn reconcile(&self, names: &[AgentName]) -> Vec<(AgentName, ListenError)> {
        let (layout, mut open) = (self.lock_layout(), self.lock_open());
        let active: HashSet<&AgentName> = names.iter().collect();
        open.retain(|name, socket| self.stays(&layout, name, socket, active.contains(name)));
        let failed = names.iter().filter_map(|name| {
            let error = self.open_missing(&layout, &mut open, name, None).err()?;
            Some((name.clone(), error))
        });
        failed.collect()
    }

    /// Does the same for one agent, whose seat may have been taken, and looks at no other.
    pub fn reconcile_one(
        &self,
        name: &AgentName,
        is_active: bool,
        seat: Option<Seat>,
    ) -> Result<(), ListenError> {
        let (layout, mut open) = (self.lock_layout(), self.lock_open());
        if open.get(name).is_some_and(|socket| !self.stays(&layout, name, socket, is_active)) {
            open.remove(name);
        }
        if is_active { self.open_missing(&layout, &mut open, name, seat) } else { Ok(()) }
    }

    /// Returns whether a socket stays open; otherwise it is closed.
    fn stays(
        &self,
        layout: &Layout,
        name: &AgentName,
        socket: &OpenSocket,
        is_active: bool,
    ) -> bool {
        // A stream of a retired agent ends with that reason; a revoked right ends at once.
        if !is_active {
            self.leaving.add(name, &socket.closing);
        } else if *socket.trust == layout.trust(name) {
            return true;
        } else {
            socket.closing.now();
        }
        self.remove_file(name, socket);
        false
    }

    /// Opens the socket of an active agent, if it is not open.
    fn open_missing(
        &self,
        layout: &Layout,
        open: &mut HashMap<AgentName, OpenSocket>,
        name: &AgentName,
        seat: Option<Seat>,
    ) -> Result<(), ListenError> {
        if !open.contains_key(name) {
            self.leaving.cut(name);
            let short = || ListenError::NoFiles(self.room.shortage(open.len() + 1));
            let seat = seat.or_else(|| self.room.seat()).ok_or_else(short)?;
            let opened = self.open_agent(layout, name, seat);
            // One that is kept and not served would be taken for another broker's.
            let opened = opened.inspect_err(|_| self.stored.forget(name))?;
            open.insert(name.clone(), opened);
        }
        Ok(())
    }

    /// Closes the socket of a retired agent; its connections soon, or after a purge at once. The
    /// next [`Self::reconcile_one`] opens a socket for an agent of that name, if there is one.
    pub fn close_agent(&self, name: &AgentName, is_purged: bool) {
        let socket = self.lock_open().remove(name);
        if let Some(socket) = socket {
            self.leaving.add(name, &socket.closing);
            self.remove_file(name, &socket);
        }
        if is_purged {
            self.leaving.cut(name);
        }
    }

    /// Removes the socket files, except those of a supervisor and of sockets that are kept for the
    /// next broker; the connections end with the process.
    pub fn remove_files(&self) {
        let operator = self.lock_layout().operator_socket();
        if !self.handed.has(&operator) {
            remove(&operator);
        }
        if !self.stored.is_kept() {
            for socket in self.lock_open().values().filter(|socket| socket.own_file) {
                remove(&socket.path);
            }
        }
    }

    /// Removes the file of a socket that is closed, unless it is a supervisor's.
    fn remove_file(&self, name: &AgentName, socket: &OpenSocket) {
        if socket.own_file {
            remove(&socket.path);
            self.stored.forget(name);
        }
    }

    /// Closes the kept sockets that no agent has: all agents have theirs by now.
    pub fn close_unused(&self) {
        self.stored.forget_rest();
    }

    /// Waits until the service manager keeps the sockets that were opened, and no others.
    pub async fn settled(self: &Arc<Self>) {
        if self.stored.has_changes() {
            let sockets = Arc::clone(self);
            let told = tokio::task::spawn_blocking(move || sockets.stored.told()).await;
            if let Err(error) = told.map_err(io::Error::from).flatten() {
                tracing::warn!(%error, "sockets of agents may not survive a restart of the broker");
            }
        }
    }

    fn open_agent(
        &self,
        layout: &Layout,
        name: &AgentName,
        seat: Seat,
    ) -> Result<OpenSocket, ListenError> {
        let path = layout.agent_socket(name);
        // Other users have to get through the directory.
        let peers = layout.named_peers(name);
        let dir_mode = if peers.is_some() { 0o755 } else { 0o700 };
        let own_file = !self.handed.has(&path);
        if let Some(dir) = path.parent().filter(|_| own_file) {
            make_dir(dir, dir_mode)?;
            // Through a link, the socket and its mode would be set elsewhere.
            if !std::fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir()) {
                return Err(ListenError::NotADirectory(dir.to_path_buf()));
            }
            // The directory may exist from a time when the socket was for other users.
            set_mode(dir, dir_mode)?;
        }
        let socket = match self.stored.reuse(name) {
            Some(kept) => kept,
            None => {
                let socket = self.socket(&path)?;
                if own_file {
                    self.stored.keep(name, &socket);
                }
                socket
            }
        };
        if own_file {
            let_in(&path, peers.as_ref())?;
        }
        let listener = listening(socket, &path)?;
        let (trust, closing) = (Arc::new(layout.trust(name)), Closing::of(&self.closing));
        let socket = self.of(Owner::Agent(name.clone()), Arc::clone(&trust));
        let agents = self.agents.clone();
        spawn(&self.tasks, accept(listener, socket, agents, closing.clone(), Some(seat)));
        Ok(OpenSocket { path, trust, closing, own_file })
    }

    /// Returns a listening socket at this path: handed over, or bound now.
    fn socket(&self, path: &Path) -> Result<StdListener, ListenError> {
        match self.handed.listener(path) {
            Some(handed) => {
                handed.map_err(|source| ListenError::Io { path: path.to_path_buf(), source })
            }
            None => bind(path),
        }
    }

    fn lock_layout(&self) -> MutexGuard<'_, Layout> {
        self.layout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the open sockets. A caller that needs the layout, too, locks that first.
    fn lock_open(&self) -> MutexGuard<'_, HashMap<AgentName, OpenSocket>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a socket for the runtime.
fn listening(socket: StdListener, path: &Path) -> Result<UnixListener, ListenError> {
    let fail = |source| ListenError::Io { path: path.to_path_buf(), source };
    socket.set_nonblocking(true).map_err(fail)?;
    UnixListener::from_std(socket).map_err(fail)
}
