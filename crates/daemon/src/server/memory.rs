//! The memory that requests take with their bodies and with the uploads that they use, until they are answered.

use super::respond::ErrorResponse;
use crate::caller::Caller;
use crate::limits::{BODY_TIMEOUT, MAX_BODY, MAX_FILE_BYTES};
use api::{ErrorCode, UserName};
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that the requests of one caller may take together. The largest request fits: a body, the files that were uploaded
/// for it, and those of a box with which they are compared.
const MAX_OF_CALLER: usize = MAX_BODY + 2 * MAX_FILE_BYTES;

/// Bytes that the requests of all users together may take, and those of administrators: one caller leaves room for others.
const MAX_OF_ALL: usize = MAX_OF_CALLER + (128 << 20);

/// The memory for the requests of a daemon. Users take nothing from administrators. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct MemoryPool {
    administrators: Arc<Semaphore>,
    users: Arc<Semaphore>,
    /// The share of each user that has requests.
    each: Arc<Mutex<HashMap<UserName, Weak<Semaphore>>>>,
    max_of_caller: usize,
}

impl Default for MemoryPool {
    fn default() -> Self {
        Self::new(MAX_OF_CALLER, MAX_OF_ALL)
    }
}

impl MemoryPool {
    pub(super) fn new(max_of_caller: usize, max_of_all: usize) -> Self {
        Self {
            administrators: Arc::new(Semaphore::new(max_of_all)),
            users: Arc::new(Semaphore::new(max_of_all)),
            each: Arc::default(),
            max_of_caller,
        }
    }

    /// Bytes that are left for administrators.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.administrators.available_permits()
    }

    /// The memory for a request of a caller.
    pub(super) fn for_request(&self, caller: &Caller) -> RequestMemory {
        let from = match caller {
            Caller::Administrator => vec![self.administrators.clone()],
            Caller::User(user) => {
                let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
                each.retain(|_, share| share.strong_count() > 0);
                let share = each.get(&user.name).and_then(Weak::upgrade).unwrap_or_else(|| {
                    let share = Arc::new(Semaphore::new(self.max_of_caller));
                    each.insert(user.name.clone(), Arc::downgrade(&share));
                    share
                });
                // A user who waits for its own requests takes nothing from others.
                vec![share, self.users.clone()]
            }
        };
        RequestMemory { from, max: self.max_of_caller, taken: Arc::default() }
    }
}

/// The memory that a request has taken. It is given back with the last clone.
#[derive(Clone, Debug)]
pub(super) struct RequestMemory {
    from: Vec<Arc<Semaphore>>,
    max: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    permits: Vec<OwnedSemaphorePermit>,
}

impl RequestMemory {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory. Waits while other requests have too much, so the caller sets a time limit.
    ///
    /// # Errors
    ///
    /// The request would have more than any may have.
    pub(super) async fn take(&self, bytes: usize) -> Result<(), ErrorResponse> {
        let sum = self.taken().bytes.saturating_add(bytes);
        let count = u32::try_from(bytes).ok().filter(|_| sum <= self.max).ok_or_else(|| {
            let message = format!("the request has {sum} bytes with its files; the limit is {}", self.max);
            ErrorResponse::new(ErrorCode::TooLarge, message)
        })?;
        for semaphore in &self.from {
            // The semaphores are never closed.
            if let Ok(permit) = semaphore.clone().acquire_many_owned(count).await {
                self.taken().permits.push(permit);
            }
        }
        self.taken().bytes += bytes;
        Ok(())
    }

    /// Takes memory for a response of unknown size, within the time for a body.
    pub(super) async fn take_for_response(&self) -> Result<(), ErrorResponse> {
        self.take_in_time(MAX_FILE_BYTES).await
    }

    /// Takes memory for files, within the time for a body.
    pub(super) async fn take_in_time(&self, bytes: usize) -> Result<(), ErrorResponse> {
        let taken = tokio::time::timeout(BODY_TIMEOUT, self.take(bytes)).await;
        taken.unwrap_or_else(|_| {
            let message = "other requests take all memory for files: try again later";
            Err(ErrorResponse::new(ErrorCode::Timeout, message))
        })
    }

    /// Keeps what was taken until a response is sent.
    pub(super) fn until_sent(self, body: Body) -> Body {
        match self.taken().bytes {
            0 => body,
            _ => Body::new(HeldBody { body, _memory: self.clone() }),
        }
    }
}

/// The body of a response that takes memory.
struct HeldBody {
    body: Body,
    _memory: RequestMemory,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::User;
    use api::Quota;
    use futures_util::FutureExt;

    fn user(name: &str) -> Caller {
        Caller::User(Arc::new(User {
            name: name.parse().unwrap(),
            owner: "alice".parse().unwrap(),
            rights: [].into(),
            quota: Quota::default(),
        }))
    }

    #[test]
    fn one_caller_leaves_memory_for_the_others() {
        let pool = MemoryPool::new(100, 200);
        let take =
            |memory: &RequestMemory, bytes| memory.take(bytes).now_or_never().map(|taken| taken.is_ok());
        let first = pool.for_request(&user("alice"));
        assert_eq!(
            (take(&first, 60), take(&first, 41), take(&first, 40)),
            (Some(true), Some(false), Some(true))
        );
        let second = pool.for_request(&user("alice"));
        assert_eq!(take(&second, 1), None);
        let other = pool.for_request(&user("bob"));
        assert_eq!(
            (take(&other, 100), take(&pool.for_request(&Caller::Administrator), 100)),
            (Some(true), Some(true))
        );
        // All users together have no more.
        assert_eq!(take(&pool.for_request(&user("carol")), 1), None);
        let clone = first.clone();
        drop(first);
        assert_eq!(take(&second, 1), None);
        drop(clone);
        assert_eq!(take(&second, 100), Some(true));
        // What a response takes is held until it is sent.
        let body = second.until_sent(Body::from("x"));
        assert_eq!(take(&pool.for_request(&user("alice")), 1), None);
        drop((body, other));
        pool.for_request(&user("carol"));
        assert_eq!((pool.each.lock().unwrap().len(), pool.users.available_permits()), (1, 200));
    }
}
