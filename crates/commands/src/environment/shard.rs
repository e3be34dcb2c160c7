//! What an environment has if it is that of one of several shards.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use element::{Descriptor, DividedRange, IoError, OtherShards, Reader, Shard, Writer};
use packet::socket_filter::FilterInstruction;
use router::{Steering, steering_filter};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::SigId;

use super::descriptors::Descriptors;
use super::files::{self, ReadProgress};
use super::parts::{Outputs, SharedMemory, part};
use super::split::SplitReader;

/// What a shard shares with the thread that controls it.
pub(crate) struct ShardLink {
    pub(crate) shard: Shard,
    pub(crate) waker: Arc<Waker>,
    pub(crate) outputs: Arc<Outputs>,
    /// Captures in memory, by the name that configurations read them by: this shard's packets.
    pub(crate) captures: Vec<(String, Arc<[u8]>)>,
}

/// Ends the turn of a shard, or its sleep.
pub(crate) struct Waker {
    is_called: AtomicBool,
    /// Has bytes from a call on, or from a signal on.
    pipe: OwnedFd,
    /// The other end.
    writer: OwnedFd,
}

impl Waker {
    pub(crate) fn new() -> std::io::Result<Waker> {
        let (pipe, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Waker { is_called: AtomicBool::new(false), pipe, writer })
    }

    /// Wakes the shard: it then takes what was sent to it before.
    pub(crate) fn wake(&self) {
        self.is_called.store(true, Ordering::Release);
        // It fails only if the shard has been woken very often, and then it wakes up.
        let _ = rustix::io::write(&self.writer, &[1]);
    }

    /// Wakes the shard when a signal arrives, whichever thread gets it.
    pub(super) fn wake_at(&self, signal: i32) -> std::io::Result<SigId> {
        signal_hook::low_level::pipe::register(signal, self.writer.try_clone()?)
    }

    /// Whether the shard was woken since the last call.
    pub(crate) fn take(&self) -> bool {
        while rustix::io::read(&self.pipe, &mut [0; 64]).is_ok_and(|count| count == 64) {}
        self.is_called.swap(false, Ordering::Acquire)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// The part of an environment that only shards have.
pub(super) struct ShardSupport {
    link: ShardLink,
    steering: Rc<RefCell<Steering>>,
    /// Whether the first configuration runs.
    is_running: Cell<bool>,
    others: Option<Box<dyn OtherShards>>,
    waker: Descriptor,
    _registered: Rc<dyn AsFd>,
}

impl ShardSupport {
    pub(super) fn new(
        link: ShardLink,
        others: Option<Box<dyn OtherShards>>,
        descriptors: &Descriptors,
    ) -> ShardSupport {
        let registered = Rc::new(link.waker.clone());
        let waker = descriptors.register(&registered);
        let steering = Rc::new(RefCell::new(Steering::new(link.shard.count)));
        ShardSupport { link, steering, is_running: Cell::new(false), others, waker, _registered: registered }
    }

    pub(super) fn others(&self) -> Option<&dyn OtherShards> {
        self.others.as_deref()
    }

    /// As [`Waker::wake_at`].
    pub(super) fn wake_at(&self, signal: i32) -> std::io::Result<SigId> {
        self.link.waker.wake_at(signal)
    }

    /// The first configuration runs from now on.
    pub(super) fn run(&self) {
        self.is_running.set(true);
    }

    pub(super) fn is_woken(&self) -> bool {
        self.link.waker.is_called.load(Ordering::Relaxed)
    }

    /// The descriptor that becomes ready when the shard is woken.
    pub(super) fn waker(&self) -> Descriptor {
        self.waker
    }

    pub(super) fn divide(&self, range: DividedRange) -> Result<(), IoError> {
        let mut steering = self.steering.borrow_mut();
        if self.is_running.get() && !steering.divides(range) {
            let text =
                "the ranges of translators can't change while several shards run: stop, and start again";
            return Err(IoError::Failed(text.into()));
        }
        match steering.divide(range) {
            true => Ok(()),
            false => Err(IoError::Failed("several shards need ranges that do not overlap".into())),
        }
    }

    /// The program that selects the received packets of this shard.
    pub(super) fn filter(&self) -> Option<Vec<FilterInstruction>> {
        let Shard { index, count } = self.link.shard;
        (count > 1).then(|| steering_filter(&self.steering.borrow(), index))
    }

    /// Opens a capture: the packets of this shard.
    pub(super) fn open(&self, path: &str, progress: &ReadProgress) -> Result<Box<dyn Reader>, IoError> {
        if let Some((_, bytes)) = self.link.captures.iter().find(|(name, _)| name == path) {
            return Ok(Box::new(SharedMemory { bytes: bytes.clone(), position: 0 }));
        }
        let file = files::open(path, progress)?;
        if self.link.shard.count == 1 {
            return Ok(file);
        }
        if path == "-" {
            let text = "several shards can't read standard input: write it to a file first";
            return Err(IoError::Failed(text.into()));
        }
        Ok(Box::new(SplitReader::new(file, self.steering.clone(), self.link.shard.index)))
    }

    /// Creates this shard's part of a file.
    pub(super) fn create(&self, path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
        if self.link.shard.count == 1 {
            return files::create(path, append);
        }
        if append {
            return Err(IoError::Unsupported("adding to a file in several shards"));
        }
        self.link.outputs.add(path);
        files::create(&part(path, self.link.shard.index), false)
    }
}
