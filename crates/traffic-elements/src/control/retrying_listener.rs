//! A listening socket, retried every second while its address is in use.

use element::prelude::*;
use element::{Listener, Stream};

use super::listen_address::ListenAddress;

/// The timer of the next attempt.
const RETRY_TIMER: usize = 0;

/// A listening socket, or one still to be opened.
pub(super) struct RetryingListener {
    pub(super) address: ListenAddress,
    /// Whether only connections from this host are accepted.
    local: bool,
    /// Remaining attempts; negative if a failure is final.
    retries: i64,
    warn: bool,
    listener: Option<Box<dyn Listener>>,
}

impl RetryingListener {
    /// Creates an unopened socket with RETRIES and RETRY_WARNINGS.
    pub(super) fn new(address: ListenAddress, local: bool, retries: i32, warn: bool) -> RetryingListener {
        RetryingListener { address, local, retries: retries.into(), warn, listener: None }
    }

    /// Makes the first attempt.
    pub(super) fn start(&mut self, cx: &Context) -> Result<(), SetupError> {
        self.attempt(cx).map_err(SetupError::new)
    }

    /// Makes the next attempt; if it is the last and fails, the driver stops.
    pub(super) fn retry(&mut self, cx: &Context) {
        if self.listener.is_none()
            && let Err(error) = self.attempt(cx)
        {
            cx.log_between_packets(&error);
            cx.stop();
        }
    }

    fn attempt(&mut self, cx: &Context) -> Result<(), String> {
        self.retries -= 1;
        match self.address.listen(self.local, cx.environment()) {
            Ok(listener) => {
                cx.watch(listener.descriptor(), true, false);
                self.listener = Some(listener);
                Ok(())
            }
            Err(error) if self.retries >= 0 => {
                if self.warn {
                    let left = self.retries + 1;
                    let tries = if left == 1 { "try" } else { "tries" };
                    cx.log_between_packets(&format!("{}: bind: {error} ({left} {tries} left)", cx.name()));
                }
                cx.set_timer_after(RETRY_TIMER, Timestamp::from_parts(1, 0));
                Ok(())
            }
            Err(error) => Err(format!("bind: {error}")),
        }
    }

    /// Takes over the socket of the previous element if it has the same address. Returns whether it did.
    pub(super) fn inherit(&mut self, old: &mut RetryingListener, cx: &Context) -> bool {
        let same = self.address.can_take_over(&old.address) && self.local == old.local;
        if same && let Some(listener) = old.listener.take() {
            if let Some(own) = self.listener.take() {
                cx.watch(own.descriptor(), false, false);
            }
            cx.clear_timer(RETRY_TIMER);
            cx.watch(listener.descriptor(), true, false);
            self.listener = Some(listener);
        }
        same
    }

    /// Accepts the next connection. A failure is logged.
    pub(super) fn accept(&mut self, cx: &Context) -> Option<Box<dyn Stream>> {
        let accepted = self.listener.as_mut()?.accept();
        accepted.unwrap_or_else(|error| {
            cx.log_between_packets(&format!("{}: accept: {error}", declaration(cx)));
            None
        })
    }

    /// Whether the descriptor is the socket's.
    pub(super) fn is(&self, descriptor: element::Descriptor) -> bool {
        self.listener.as_ref().is_some_and(|listener| listener.descriptor() == descriptor)
    }

    /// The TCP port in use, or the configured one.
    pub(super) fn port(&self) -> String {
        match (&self.listener, &self.address) {
            (Some(listener), _) => listener.local(),
            (None, ListenAddress::Tcp { port, next_free }) => {
                format!("{port}{}", if *next_free { "+" } else { "" })
            }
            _ => String::new(),
        }
    }

    /// Closes the socket.
    pub(super) fn stop(&mut self) {
        self.listener = None;
    }
}

/// An element's declaration, as in Click's messages.
pub(super) fn declaration(cx: &Context) -> String {
    format!("{} :: {}", cx.name(), cx.class_name())
}
