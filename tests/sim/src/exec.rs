//! The executor: polls tasks one at a time, in an order chosen by the dice.
//!
//! What it is not: a runtime; timers are those of tokio's paused clock. Invariant: a task is polled
//! only after its waker was called, so that a lost wakeup is seen.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The ID of a task; never reused.
pub(crate) type TaskId = u64;
/// The group of tasks that die together: those of one broker. The clients' is 0.
pub(crate) type Group = u32;
/// The group of tasks that outlive a broker.
pub(crate) const CLIENTS: Group = 0;

type Work = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Ready {
    tasks: BTreeSet<TaskId>,
    idler: Option<Waker>,
}

#[derive(Default)]
struct Shared(Mutex<Ready>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TaskWaker {
    id: TaskId,
    shared: Arc<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let idler = {
            let mut ready = self.shared.lock();
            ready.tasks.insert(self.id);
            ready.idler.take()
        };
        if let Some(idler) = idler {
            idler.wake();
        }
    }
}

struct Task {
    group: Group,
    name: String,
    waker: Waker,
    /// `None` while it is polled.
    work: Option<Work>,
}

#[derive(Default)]
pub(crate) struct Exec {
    tasks: RefCell<BTreeMap<TaskId, Task>>,
    last: Cell<TaskId>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks", self.tasks.borrow().len())
    }
}

impl Exec {
    pub(crate) fn spawn(
        &self,
        group: Group,
        name: String,
        work: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let id = self.last.get() + 1;
        self.last.set(id);
        let waker = Waker::from(Arc::new(TaskWaker { id, shared: Arc::clone(&self.shared) }));
        self.tasks.borrow_mut().insert(id, Task { group, name, waker, work: Some(Box::pin(work)) });
        self.shared.lock().tasks.insert(id);
        id
    }

    /// Returns the number of tasks that are ready.
    pub(crate) fn ready(&self) -> usize {
        self.shared.lock().tasks.len()
    }

    /// Takes the `nth` of the ready tasks.
    pub(crate) fn take(&self, nth: usize) -> Option<TaskId> {
        let mut ready = self.shared.lock();
        let id = ready.tasks.iter().nth(nth).copied()?;
        ready.tasks.remove(&id);
        Some(id)
    }

    pub(crate) fn name(&self, id: TaskId) -> String {
        self.tasks.borrow().get(&id).map_or_else(String::new, |task| task.name.clone())
    }

    /// Polls a task; does nothing if it is gone.
    pub(crate) fn poll(&self, id: TaskId) {
        let (mut work, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let Some(task) = tasks.get_mut(&id) else { return };
            let Some(work) = task.work.take() else { return };
            (work, task.waker.clone())
        };
        let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
        let over = {
            let mut tasks = self.tasks.borrow_mut();
            match (polled, tasks.get_mut(&id)) {
                (Poll::Pending, Some(task)) => {
                    task.work = Some(work);
                    None
                }
                (Poll::Pending, None) => Some(work),
                (Poll::Ready(()), _) => {
                    tasks.remove(&id);
                    Some(work)
                }
            }
        };
        drop(over);
    }

    /// Ends a task immediately.
    pub(crate) fn kill(&self, id: TaskId) {
        let task = self.tasks.borrow_mut().remove(&id);
        self.shared.lock().tasks.remove(&id);
        drop(task);
    }

    /// Ends all tasks of a group immediately.
    pub(crate) fn kill_group(&self, group: Group) {
        let ids: Vec<TaskId> = self
            .tasks
            .borrow()
            .iter()
            .filter(|(_, task)| task.group == group)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.kill(id);
        }
    }

    /// Ends all tasks.
    pub(crate) fn clear(&self) {
        loop {
            let next = self.tasks.borrow_mut().pop_first();
            let Some((_, task)) = next else { break };
            drop(task);
        }
        self.shared.lock().tasks.clear();
    }

    /// Waits until a task is ready. In the meantime the paused clock advances to the next timer by
    /// itself.
    pub(crate) async fn idle(&self) {
        std::future::poll_fn(|context| {
            let mut ready = self.shared.lock();
            if ready.tasks.is_empty() {
                ready.idler = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}
