//! The books of a router: where packets came into being, where they ended, and where they wait.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use element::{Fate, FateCounts, Reason, Waiting};
use packet::Timestamp;

/// The books of a router since it started, hot swaps included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Packets that came into being or ended, without those that were lost.
    pub fates: FateCounts,
    /// Lost packets by reason.
    pub lost: Vec<(Cow<'static, str>, u64)>,
    /// Packets that wait now.
    pub waiting: u64,
    /// How long the oldest of them has waited, at most.
    pub oldest: Option<Timestamp>,
    /// Packets that are never sent, from which others are made.
    pub templates: u64,
}

/// The books of a router as numbers only, which are quick to add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that came into being or ended, without those that were lost.
    pub fates: FateCounts,
    /// Lost packets by reason, without the reasons of users' functions.
    pub lost: Vec<(Reason, u64)>,
    /// Packets that were lost for reasons of users' functions.
    pub unlisted: u64,
}

/// The books of one element, since the router or the last hot swap started. At rest, their two sides are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementAccount {
    /// The element's name.
    pub element: String,
    /// Its class.
    pub class: &'static str,
    /// Packets that came in at its inputs.
    pub entered: u64,
    /// Packets that it took over outside its inputs: from another element, or from one of the configuration before.
    pub taken_over: u64,
    /// Packets that went out at its outputs.
    pub left: u64,
    /// Packets that it handed over to another element outside its outputs.
    pub handed_over: u64,
    /// Packets that came into being or ended here, without those that were lost.
    pub fates: FateCounts,
    /// Lost packets by reason.
    pub lost: Vec<(Cow<'static, str>, u64)>,
    /// What waits here; `None` while the element is being called.
    pub waiting: Option<Waiting>,
}

/// The packets that an element lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The element's name.
    pub element: String,
    /// The reason's name.
    pub reason: Cow<'static, str>,
    /// The number of packets.
    pub packets: u64,
}

/// Packets that ended as the configuration says, and the connection that led there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedBy {
    /// The connection in the language: `fw[1] -> Discard@5`, or `x -> [2] idle`. For an element without inputs, which
    /// discards packets that it has just read, its name.
    pub connection: String,
    /// The number of packets.
    pub packets: u64,
}

impl ElementAccount {
    /// Packets that came in or into being.
    pub fn inflow(&self) -> u64 {
        self.entered + self.taken_over + self.fates.begun()
    }

    /// Packets that went out, ended or wait.
    pub fn outflow(&self) -> u64 {
        let lost: u64 = self.lost.iter().map(|(_, packets)| packets).sum();
        self.left
            + self.handed_over
            + self.fates.ended()
            + lost
            + self.waiting.map_or(0, |waiting| waiting.packets)
    }
}

impl Totals {
    /// Sets all numbers to 0. Reasons that occurred stay.
    pub fn clear(&mut self) {
        (self.fates, self.unlisted) = (FateCounts::default(), 0);
        self.lost.iter_mut().for_each(|(_, packets)| *packets = 0);
    }

    /// Adds lost packets.
    #[inline]
    pub fn add_lost(&mut self, reason: Reason, packets: u64) {
        if reason.listed_number().is_none() {
            self.unlisted += packets;
        } else if let Some((_, sum)) = self.lost.iter_mut().find(|(known, _)| *known == reason) {
            *sum += packets;
        } else {
            self.lost.push((reason, packets));
        }
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Totals) {
        self.fates.add(&other.fates);
        other.lost.iter().for_each(|(reason, packets)| self.add_lost(*reason, *packets));
        self.unlisted += other.unlisted;
    }

    /// Adds books.
    pub fn add_account(&mut self, other: &Account) {
        self.fates.add(&other.fates);
        for (name, packets) in &other.lost {
            match Reason::find(name) {
                Some(reason) => self.add_lost(reason, *packets),
                None => self.unlisted += packets,
            }
        }
    }
}

impl Account {
    /// Packets that came into being.
    pub fn inflow(&self) -> u64 {
        self.fates.begun()
    }

    /// Packets that ended or wait.
    pub fn outflow(&self) -> u64 {
        let lost: u64 = self.lost.iter().map(|(_, packets)| packets).sum();
        self.fates.ended() + lost + self.waiting
    }

    /// Adds lost packets.
    pub fn add_lost(&mut self, reason: Cow<'static, str>, packets: u64) {
        match self.lost.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += packets,
            None if packets > 0 => self.lost.push((reason, packets)),
            None => {}
        }
    }

    /// Adds what happened according to other books. What waits there is not added.
    pub fn add(&mut self, other: &Account) {
        self.fates.add(&other.fates);
        other.lost.iter().for_each(|(reason, packets)| self.add_lost(reason.clone(), *packets));
    }

    /// The books in lines, a name and a number each: the value of the handler `account`.
    pub(crate) fn text(&self) -> String {
        let mut text = fates_text(&self.fates, &self.lost);
        waiting_text(&mut text, self.waiting, self.oldest);
        text
    }
}

/// Fates and losses in lines, a name and a number each.
pub(crate) fn fates_text(fates: &FateCounts, lost: &[(Cow<'static, str>, u64)]) -> String {
    let mut text = String::new();
    for fate in Fate::COUNTED {
        if fates.of(fate) > 0 {
            let _ = writeln!(text, "{} {}", fate.name(), fates.of(fate));
        }
    }
    for (reason, packets) in lost {
        let _ = writeln!(text, "lost {reason} {packets}");
    }
    text
}

/// Adds the lines about packets that wait.
pub(crate) fn waiting_text(text: &mut String, packets: u64, age: Option<Timestamp>) {
    if packets > 0 {
        let _ = writeln!(text, "waiting {packets}");
        if let Some(age) = age {
            let _ = writeln!(text, "oldest {age}");
        }
    }
}
