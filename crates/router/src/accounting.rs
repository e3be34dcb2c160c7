//! The reading of a router's books.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use element::{Fate, Reason, Waiting};
use packet::Timestamp;

use crate::account::{Account, DiscardedBy, ElementAccount, Loss, Totals, fates_text, waiting_text};
use crate::node::Node;
use crate::router::Router;
use crate::state::RouterState;

impl RouterState {
    /// What waits in an element; `None` if it is being called.
    fn waiting_at(&self, node: &Node) -> Option<Waiting> {
        let mut waiting = Waiting::default();
        let object = node.object.try_borrow().ok()?;
        if let Some(object) = object.as_ref() {
            object.waiting(&mut waiting);
        }
        Some(waiting)
    }

    /// The time since a point of steady time.
    fn age(&self, since: Option<Timestamp>) -> Option<Timestamp> {
        since.map(|since| (self.resources.steady() - since).max(Timestamp::ZERO))
    }

    fn lost_at(&self, node: &Node) -> Vec<(Cow<'static, str>, u64)> {
        let mut lost = Vec::new();
        node.element.drops.for_each(|reason, packets| lost.push((self.reason_name(reason), packets)));
        lost
    }

    fn element_account(&self, node: &Node) -> ElementAccount {
        ElementAccount {
            element: node.element.name.clone(),
            class: node.element.class.name,
            entered: self.packets_in(node).sum(),
            taken_over: node.element.taken_over.get(),
            left: self.packets_out(node).sum(),
            handed_over: node.element.handed_over.get(),
            fates: node.element.fates.counts(),
            lost: self.lost_at(node),
            waiting: self.waiting_at(node),
        }
    }

    /// The elements that have counted packets.
    fn counting_nodes(&self) -> impl Iterator<Item = &Node> {
        self.counting.iter().filter_map(|index| self.nodes.get(index))
    }

    pub(crate) fn account(&self) -> Account {
        let mut account = self.past.clone();
        let mut all = Waiting::default();
        for node in self.counting_nodes() {
            account.fates.add(&node.element.fates.counts());
            node.element
                .drops
                .for_each(|reason, packets| account.add_lost(self.reason_name(reason), packets));
        }
        for node in self.hooks.holders.iter().filter_map(|holder| self.nodes.get(*holder)) {
            let waiting = self.waiting_at(node).unwrap_or_default();
            all.add(usize::try_from(waiting.packets).unwrap_or(usize::MAX), waiting.oldest);
            account.templates += waiting.templates;
        }
        account.waiting = all.packets;
        account.oldest = self.age(all.oldest);
        account
    }

    /// The connections that lead to elements that discard packets, as numbers of elements and ports, with their counts.
    fn discards(&self) -> Vec<DiscardedBy> {
        let mut discards = Vec::new();
        for node in self.nodes.iter().filter(|node| node.element.class.fates.contains(&Fate::Discarded)) {
            let discarded = node.element.fates.counts().of(Fate::Discarded);
            if node.inputs.is_empty() && discarded > 0 {
                discards.push(DiscardedBy { connection: node.element.name.clone(), packets: discarded });
            }
            for (number, input) in node.inputs.iter().enumerate() {
                for (peer, output) in &input.links.peers {
                    let Some(from) = self.nodes.get(*peer) else { continue };
                    // Of the two ports, the one that pushes or pulls has a single peer.
                    let count =
                        if input.links.push { self.pushed(from, *output) } else { input.pulled.get() };
                    if count > 0 {
                        let from_port =
                            if from.outputs.len() > 1 { format!("[{output}]") } else { String::new() };
                        let to_port =
                            if node.inputs.len() > 1 { format!("[{number}] ") } else { String::new() };
                        let (from, to) = (&from.element.name, &node.element.name);
                        let connection = format!("{from}{from_port} -> {to_port}{to}");
                        discards.push(DiscardedBy { connection, packets: count });
                    }
                }
            }
        }
        discards
    }

    /// The value of the handler `fates` of an element.
    pub(crate) fn fates_text(&self, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else { return String::new() };
        let mut text = fates_text(&node.element.fates.counts(), &self.lost_at(node));
        if let Some(waiting) = self.waiting_at(node) {
            waiting_text(&mut text, waiting.packets, self.age(waiting.oldest));
        }
        text
    }

    /// The value of the router's handler `accounts`.
    pub(crate) fn accounts_text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let account = self.element_account(node);
            let of = |fate| account.fates.of(fate);
            let _ = write!(text, "{}\t{}", account.element, account.class);
            for count in [
                account.entered + account.taken_over,
                account.fates.begun(),
                account.left + account.handed_over,
                of(Fate::Discarded),
                of(Fate::Delivered),
                of(Fate::Consumed) + of(Fate::Merged),
            ] {
                let _ = write!(text, "\t{count}");
            }
            // The element that reads this handler is being called.
            let waiting =
                account.waiting.map_or_else(|| "-".into(), |waiting| format!("{}", waiting.packets));
            let _ = write!(text, "\t{waiting}\t");
            for (index, (reason, packets)) in account.lost.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let _ = write!(text, "{comma}{reason}={packets}");
            }
            text.push('\n');
        }
        text
    }

    /// The value of the router's handler `discards`.
    pub(crate) fn discards_text(&self) -> String {
        let mut text = String::new();
        for discard in self.discards() {
            let _ = writeln!(text, "{} {}", discard.packets, discard.connection);
        }
        text
    }

    /// The value of the router's handler `waiting`.
    pub(crate) fn waiting_text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let waiting = self.waiting_at(node).unwrap_or_default();
            if waiting.packets > 0 {
                let age = self.age(waiting.oldest).map_or_else(|| "-".into(), |age| format!("{age}"));
                let _ = writeln!(text, "{} {age} {}", waiting.packets, node.element.name);
            }
        }
        text
    }

    /// Continues the books of the configuration before, whose elements took over what they could. What they left
    /// behind ends with it.
    pub(crate) fn continue_account(&mut self, mut past: Account) {
        past.add_lost(Cow::Borrowed(Reason::REMOVED.name()), past.waiting);
        (past.waiting, past.oldest, past.templates) = (0, None, 0);
        self.past_totals = Totals::default();
        self.past_totals.add_account(&past);
        self.past = past;
    }

    /// The packets that wait in an element.
    pub(crate) fn packets_waiting_at(&self, node: &Node) -> u64 {
        self.waiting_at(node).map_or(0, |waiting| waiting.packets)
    }
}

impl Router {
    /// Adds the router's books, hot swaps included, as numbers.
    pub fn add_totals(&self, totals: &mut Totals) {
        totals.add(&self.state.past_totals);
        for node in self.state.counting_nodes() {
            totals.fates.add(&node.element.fates.counts());
            node.element.drops.for_each(|reason, packets| totals.add_lost(reason, packets));
        }
    }

    /// The router's books, hot swaps included.
    pub fn account(&self) -> Account {
        self.state.resources.clock.refresh();
        self.state.account()
    }

    /// The books of each element, since the last hot swap.
    pub fn element_accounts(&self) -> impl Iterator<Item = ElementAccount> {
        self.state.nodes.iter().map(|node| self.state.element_account(node))
    }

    /// The elements in which packets wait, with what waits there and how long the oldest has waited, at most.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, u64, Option<Timestamp>)> {
        self.state.resources.clock.refresh();
        self.state.nodes.iter().filter_map(|node| {
            let waiting = self.state.waiting_at(node).filter(|waiting| waiting.packets > 0)?;
            Some((&*node.element.name, waiting.packets, self.state.age(waiting.oldest)))
        })
    }

    /// The connections that lead to elements that discard packets, with the number of packets, if there were any.
    pub fn discards(&self) -> Vec<DiscardedBy> {
        self.state.discards()
    }

    /// Lost packets by element and reason.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for node in &self.state.nodes {
            for (reason, packets) in self.state.lost_at(node) {
                losses.push(Loss { element: node.element.name.clone(), reason, packets });
            }
        }
        losses
    }
}
