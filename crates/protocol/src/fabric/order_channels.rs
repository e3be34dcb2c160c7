//! Channels beside that of a conversation, each for one order at a time.
//!
//! On the channel of the conversation any thread sends, and one receives for all: it is woken for each answer, and wakes the thread
//! that waits. On an order channel the thread that waits receives the answer itself, and no other thread is woken for it. The same
//! holds at the fabric, where one thread serves the channel.

use super::{FromFabric, MAX_REPLY_BYTES, Reply, UnknownFromFabric};
use crate::channel::{Channel, ChannelError, Received};
use serde_bytes::ByteBuf;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The order channels of a client.
#[derive(Debug, Default)]
pub(super) struct OrderChannels(Mutex<ChannelLists>);

#[derive(Debug, Default)]
struct ChannelLists {
    /// Those without an order. The last one was used last.
    idle: Vec<Arc<Channel>>,
    /// Those with an order whose answer is no longer waited for, and its number.
    abandoned: Vec<(Arc<Channel>, u64)>,
    all: Vec<Weak<Channel>>,
    is_closed: bool,
}

/// An order on a channel of its own. The channel is used again once the answer has come, even if this was dropped before.
#[derive(Debug)]
pub(super) struct OwnOrder {
    channels: Arc<OrderChannels>,
    channel: Arc<Channel>,
    number: u64,
    is_answered: bool,
}

/// A message on an order channel.
pub(super) type Incoming = Result<Option<Received<Result<FromFabric, UnknownFromFabric>>>, ChannelError>;

/// What a message on an order channel is to the order there.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Its reply, as the fabric encoded it.
    Reply(Result<ByteBuf, super::FabricError>, Vec<OwnedFd>),
    /// The reply of a later version.
    Later,
    /// A reply that this process has no descriptors left for.
    Truncated,
    /// The end of the channel.
    End,
    /// No reply to this order.
    Fault(String),
}

impl OrderChannels {
    fn state(&self) -> MutexGuard<'_, ChannelLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds channels that the fabric serves.
    pub(super) fn add(&self, channels: Vec<Channel>) {
        let mut state = self.state();
        // One that is closed drops them, which ends them.
        if !state.is_closed {
            let channels: Vec<_> = channels.into_iter().map(Arc::new).collect();
            state.all.extend(channels.iter().map(Arc::downgrade));
            state.idle.extend(channels);
        }
    }

    /// A channel for an order. `None` if each one has an order.
    pub(super) fn take(&self) -> Option<Arc<Channel>> {
        let mut state = self.state();
        if let Some(channel) = state.idle.pop() {
            return Some(channel);
        }
        let answered = state.abandoned.iter().enumerate().find_map(|(at, (channel, number))| {
            let meaning = meaning(*number, try_receive(channel)?);
            Some((at, meaning.is_answer()))
        });
        let (at, is_answer) = answered?;
        let (channel, _) = state.abandoned.swap_remove(at);
        // The reader of the conversation finds out about an end.
        is_answer.then_some(channel)
    }

    /// Takes back a channel that has no order.
    pub(super) fn put_back(&self, channel: Arc<Channel>) {
        let mut state = self.state();
        if !state.is_closed {
            state.idle.push(channel);
        }
    }

    /// Takes back a channel whose order will be answered.
    fn abandon(&self, channel: Arc<Channel>, number: u64) {
        let mut state = self.state();
        if !state.is_closed {
            state.abandoned.push((channel, number));
        }
    }

    /// Ends all channels. Threads that wait at one see that.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.idle.clear();
        state.abandoned.clear();
        std::mem::take(&mut state.all)
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|channel| channel.shut_down());
    }
}

impl OwnOrder {
    /// An order that was sent on a channel.
    pub(super) fn new(channels: &Arc<OrderChannels>, channel: Arc<Channel>, number: u64) -> Self {
        Self { channels: channels.clone(), channel, number, is_answered: false }
    }

    /// The next message, if there is one now.
    pub(super) fn try_receive(&self) -> Option<Incoming> {
        try_receive(&self.channel)
    }

    /// Waits for the next message.
    pub(super) fn receive(&self) -> Incoming {
        self.channel.receive_or(MAX_REPLY_BYTES)
    }

    /// What a message says about the order.
    pub(super) fn meaning(&mut self, message: Incoming) -> Meaning {
        let meaning = meaning(self.number, message);
        self.is_answered = meaning.is_answer();
        meaning
    }
}

impl Drop for OwnOrder {
    fn drop(&mut self) {
        if self.is_answered {
            self.channels.put_back(self.channel.clone());
        } else {
            self.channels.abandon(self.channel.clone(), self.number);
        }
    }
}

impl AsFd for OwnOrder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Meaning {
    /// Whether the channel can have another order.
    fn is_answer(&self) -> bool {
        matches!(self, Self::Reply(..) | Self::Later | Self::Truncated)
    }
}

fn try_receive(channel: &Channel) -> Option<Incoming> {
    match channel.try_receive_or(MAX_REPLY_BYTES) {
        Err(ChannelError::WouldBlock) => None,
        received => Some(received),
    }
}

/// What a message says about the order with this number.
fn meaning(order: u64, message: Incoming) -> Meaning {
    match message {
        Ok(Some(Received { message: Ok(FromFabric::Reply(Reply { number, result })), descriptors }))
            if number == order =>
        {
            Meaning::Reply(result, descriptors)
        }
        Ok(Some(Received { message: Err(UnknownFromFabric::Reply(reply)), .. })) if reply.number == order => {
            Meaning::Later
        }
        Ok(Some(_)) => Meaning::Fault("it sends what was not asked for".into()),
        Ok(None) => Meaning::End,
        Err(ChannelError::Truncated) => Meaning::Truncated,
        Err(error) => Meaning::Fault(::model::with_causes(&error)),
    }
}
