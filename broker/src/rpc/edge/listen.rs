//! Listening: one socket per agent and one for the operator, in step with the agents.
//!
//! A change of one agent costs the same however many there are. Invariant: a socket on which a
//! process answers is never taken from it; only a dead one is replaced. Directories stay when an
//! agent is retired, because a container may have them mounted. Sockets that a supervisor handed
//! over are served, and their files are not changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hive_core::name::AgentName;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::accept;
use super::closing::{Closing, Leaving};
use super::conn::{Conn, Owner, Trust};
use super::handed;
pub use super::handed::Handed;
pub use super::layout::Layout;
use super::layout::own_uids;
use super::room::{Room, Seat};
use super::socket_file::{bind, group_id, make_dir, remove, set_mode};
use crate::engine::sandboxes::Sandboxes;
use crate::files::{self, Shortage};
use crate::spawn::spawn;

/// Accepted connections that wait to be served.
const BACKLOG_CONNECTIONS: usize = 64;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The path is too long for an address in Linux.
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter runtime_dir", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// A process answers on the socket.
    #[error("another process answers on {}; stop it first, or choose another runtime_dir", .0.display())]
    InUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} is there and is no socket; move it away", .0.display())]
    NotASocket(PathBuf),
    /// The path of a socket's directory exists and is not a directory; a link is not one.
    #[error("{} is there and is no directory of its own; move it away", .0.display())]
    NotADirectory(PathBuf),
    /// The host has no such group.
    #[error("there is no group `{0}` on this host (socket_group)")]
    NoSuchGroup(String),
    /// The mode of a handed-over socket lets in users who are not in the group.
    #[error(
        "the socket {} was handed over with mode {mode:04o} and group {gid}, which lets in more than the group `{group}` (socket_group); \
         set SocketMode=0660 and SocketGroup={group} where it is opened", .path.display()
    )]
    OpenToOthers {
        /// The socket.
        path: PathBuf,
        /// The file mode.
        mode: u32,
        /// The owning group, if there is one.
        gid: u32,
        /// The group that may use it.
        group: String,
    },
    /// Agents have all files open that they may have.
    #[error("{0}")]
    NoFiles(Shortage),
    /// The host returned an error.
    #[error("the socket {} could not be made", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
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
    room: Room,
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
        handed: Handed,
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
            room: Room::below(files::limit()),
            sandboxes,
            tasks,
            closing,
        });
        let listener = sockets.listener(&path)?;
        let trust = sockets.protect(&path, group).inspect_err(|_| {
            if !sockets.handed.has(&path) {
                remove(&path);
            }
        })?;
        let closing = Closing::of(&sockets.closing);
        let of = (Owner::Operator, Arc::new(trust));
        spawn(
            &sockets.tasks,
            accept(listener, of, Arc::clone(&sockets.sandboxes), operator, closing, None),
        );
        Ok((sockets, agent_conns, operator_conns))
    }

    /// Gives the operator's socket its mode and group; returns who may use it.
    fn protect(&self, path: &Path, group: Option<String>) -> Result<Trust, ListenError> {
        let is_handed = self.handed.has(path);
        let Some(group) = group else {
            if !is_handed {
                set_mode(path, 0o600)?;
            }
            return Ok(Trust::Uids(own_uids()));
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

    /// Sets the users of each agent's socket, from the next [`Self::reconcile`] on. The paths of
    /// sockets change with a restart only.
    pub fn set_uids(&self, uids: BTreeMap<AgentName, Vec<u32>>) {
        self.lock_layout().uids = uids;
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
        socket.remove_file();
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
            open.insert(name.clone(), self.open_agent(layout, name, seat)?);
        }
        Ok(())
    }

    /// Closes the socket of a retired agent; its connections soon, or after a purge at once. The
    /// next [`Self::reconcile_one`] opens a socket for an agent of that name, if there is one.
    pub fn close_agent(&self, name: &AgentName, is_purged: bool) {
        let socket = self.lock_open().remove(name);
        if let Some(socket) = socket {
            self.leaving.add(name, &socket.closing);
            socket.remove_file();
        }
        if is_purged {
            self.leaving.cut(name);
        }
    }

    /// Removes the socket files, except those of a supervisor; the connections end with the
    /// process.
    pub fn remove_files(&self) {
        let operator = self.lock_layout().operator_socket();
        if !self.handed.has(&operator) {
            remove(&operator);
        }
        for socket in self.lock_open().values() {
            socket.remove_file();
        }
    }

    fn open_agent(
        &self,
        layout: &Layout,
        name: &AgentName,
        seat: Seat,
    ) -> Result<OpenSocket, ListenError> {
        let path = layout.agent_socket(name);
        // Other users have to get through the directory and open the socket; the kernel then
        // reports the user of each peer.
        let (dir_mode, mode) =
            if layout.named_uids(name).is_some() { (0o755, 0o666) } else { (0o700, 0o600) };
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
        let listener = self.listener(&path)?;
        if own_file {
            set_mode(&path, mode)?;
        }
        let (trust, closing) = (Arc::new(layout.trust(name)), Closing::of(&self.closing));
        let of = (Owner::Agent(name.clone()), Arc::clone(&trust));
        spawn(
            &self.tasks,
            accept(
                listener,
                of,
                Arc::clone(&self.sandboxes),
                self.agents.clone(),
                closing.clone(),
                Some(seat),
            ),
        );
        Ok(OpenSocket { path, trust, closing, own_file })
    }

    /// Returns a listener on this path: handed over, or bound now.
    fn listener(&self, path: &Path) -> Result<UnixListener, ListenError> {
        let fail = |source| ListenError::Io { path: path.to_path_buf(), source };
        let listener = match self.handed.listener(path) {
            Some(handed) => handed.map_err(fail)?,
            None => bind(path)?,
        };
        listener.set_nonblocking(true).map_err(fail)?;
        UnixListener::from_std(listener).map_err(fail)
    }

    fn lock_layout(&self) -> MutexGuard<'_, Layout> {
        self.layout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the open sockets. A caller that needs the layout, too, locks that first.
    fn lock_open(&self) -> MutexGuard<'_, HashMap<AgentName, OpenSocket>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSocket {
    fn remove_file(&self) {
        if self.own_file {
            remove(&self.path);
        }
    }
}
