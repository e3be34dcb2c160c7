//! A port as its switch has it: which frames it may send, and what was counted.

use crate::addresses::{Addresses, HEADER};
use crate::counters::Counters;
use crate::port::PortSettings;
use crate::port_config::PortConfig;
use crate::rate_limiter::{RateLimit, RateLimiter};
use packet::MacAddr;
use reason::Reason;

/// Where bridges send frames of spanning trees (IEEE 802.1D-2004, 7.12.3).
const SPANNING_TREE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);

/// A port: what it may send, and what was counted.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) settings: PortSettings,
    pub(crate) limiter: RateLimiter,
    pub(crate) counters: Counters,
    /// Frames that were planned to be sent to it.
    pub(crate) planned: u64,
    /// Whether it gets frames that are sent to all ports.
    pub(crate) is_flooded: bool,
    config: PortConfig,
    /// Whether settings or configuration refuse some frames, whatever their number.
    is_restricted: bool,
}

impl Port {
    pub(crate) fn new(settings: PortSettings, limiter: RateLimiter) -> Self {
        let (counters, config) = (Counters::default(), PortConfig::default());
        let (planned, is_flooded, is_restricted) = (0, true, false);
        let mut port = Self { settings, limiter, counters, planned, is_flooded, config, is_restricted };
        port.note_restrictions();
        port
    }

    pub(crate) fn set(&mut self, settings: PortSettings) {
        self.settings = settings;
        self.note_restrictions();
    }

    pub(crate) fn configure(&mut self, config: PortConfig) {
        self.config = config;
        self.note_restrictions();
    }

    fn note_restrictions(&mut self) {
        let PortSettings { source, guard, .. } = &self.settings;
        let PortConfig { no_receive, no_receive_stp, .. } = self.config;
        self.is_restricted = source.is_some() || guard.is_some() || no_receive || no_receive_stp;
    }

    /// Whether frames have to be looked at before the port may send them.
    pub(crate) fn checks_frames(&self) -> bool {
        self.is_restricted || self.settings.rate_limit != RateLimit::default()
    }

    /// The addresses of a frame with this head, if the port may send it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, head: &[u8], length: usize, now: u64) -> Result<Addresses, Reason> {
        if head.len() < HEADER {
            return Err(Reason::TOO_SHORT);
        }
        let Some(addresses) = Addresses::of(head) else { return Err(Reason::TOO_SHORT) };
        if self.is_restricted {
            self.check_restrictions(head, addresses)?;
        }
        self.limiter.admit(length, addresses.pair()[0].is_group(), now)?;
        Ok(addresses)
    }

    #[inline(always)]
    fn check_restrictions(&self, head: &[u8], addresses: Addresses) -> Result<(), Reason> {
        let [destination, source] = addresses.pair();
        let is_refused = match destination {
            SPANNING_TREE => self.config.no_receive_stp,
            _ => self.config.no_receive,
        };
        if is_refused {
            return Err(Reason::PORT_CONFIG);
        }
        if self.settings.source.is_some_and(|only| only != source) {
            return Err(Reason::SPOOFED);
        }
        self.settings.guard.as_ref().map_or(Ok(()), |guard| guard.check(head))
    }
}
