//! What passes between a shard of a switch and the others.

use super::{Message, SHARD_BITS, shard_of, without_shard};
use crate::driver::part_sent;
use crate::forward::{Forward, FrameHead};
use crate::port::PortId;
use crate::runner::{QUANTUM, SwitchRunner, count_sent, running_slot};
use flow_table::Key;
use packet::MacAddr;
use reason::Reason;
use std::time::Instant;

/// Groups of frames that are taken from another shard in one round, so that its turn ends.
const MAX_GROUPS: usize = 16;

impl<F: Forward> SwitchRunner<F> {
    /// Passes the frames of the batch that belong to other shards on to them. Those that find no room are lost.
    #[cold]
    pub(crate) fn spread(&mut self, port: PortId) {
        let Self { exchange: Some(exchange), batch, switch, .. } = self else { return };
        batch.complete_where(Key::needs_more);
        let (own, spread) = (exchange.own(), exchange.spread);
        let mut parts = std::mem::take(&mut exchange.parts);
        let mut away = Vec::new();
        for number in 0..batch.len() {
            let tag = batch.mark(number).tag;
            let shard = match batch.split_frame(number) {
                // Its flow has a record there.
                _ if tag != 0 => shard_of(tag),
                Some(frame) => spread.thread_of(frame.head),
                None => own,
            };
            if shard != own
                && let Some(part) = parts.get_mut(shard)
            {
                part.push(number as u32);
                away.push(number as u32);
            }
        }
        batch.complete(&away);
        for (shard, part) in parts.iter_mut().enumerate().filter(|(_, part)| !part.is_empty()) {
            let sent = exchange.send(shard, Message::Received(port), batch, part);
            switch.lost(port, Reason::THREAD_FULL, (part.len() - sent) as u64);
            part.clear();
        }
        exchange.parts = parts;
        batch.remove(&away);
        batch.clear_tags(SHARD_BITS);
        self.pass_translated(port);
    }

    /// Passes frames on to other shards that a translator made frames of their flows.
    fn pass_translated(&mut self, port: PortId) {
        let Self { exchange: Some(exchange), batch, switch, start, .. } = self else { return };
        if !switch.forward_mut().translates(port) {
            return;
        }
        let now = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (own, spread) = (exchange.own(), exchange.spread);
        let mut parts = std::mem::take(&mut exchange.parts);
        let mut away = Vec::new();
        for number in 0..batch.len() {
            let mark = batch.mark(number);
            let Some(frame) = batch.split_frame(number).filter(|_| mark.tag != 0) else { continue };
            let head = FrameHead { head: frame.head, length: frame.length(), mark };
            let shard = spread.thread_of(frame.head);
            if shard != own
                && let Some(part) = parts.get_mut(shard)
                && let Some(tag) = switch.forward_mut().translated(&head, port, now)
            {
                batch.set_tag(number, tag);
                part.push(number as u32);
                away.push(number as u32);
            }
        }
        batch.complete(&away);
        for (shard, part) in parts.iter_mut().enumerate().filter(|(_, part)| !part.is_empty()) {
            let sent = exchange.send(shard, Message::Translated(port), batch, part);
            for number in part.iter().take(sent) {
                switch.forward_mut().passed_translated(batch.mark(*number as usize).tag);
            }
            switch.lost(port, Reason::THREAD_FULL, (part.len() - sent) as u64);
            part.clear();
        }
        exchange.parts = parts;
        batch.remove(&away);
    }

    /// Notes in the tags of frames that go to functions that their flows belong to this shard.
    #[inline]
    pub(crate) fn mark_shard(&mut self) {
        if let Some(exchange) = &self.exchange {
            self.batch.mark_tags(exchange.mark());
        }
    }

    /// Takes what other shards sent. Returns the number of frames.
    #[inline]
    pub(crate) fn serve_shards(&mut self, clock: &mut Instant) -> usize {
        match &self.exchange {
            Some(exchange) => {
                let (own, count) = (exchange.own(), exchange.count());
                (0..count).filter(|shard| *shard != own).map(|shard| self.serve_shard(shard, clock)).sum()
            }
            None => 0,
        }
    }

    #[cold]
    fn serve_shard(&mut self, from: usize, clock: &mut Instant) -> usize {
        let mut moved = 0;
        for _ in 0..MAX_GROUPS {
            let received =
                self.exchange.as_mut().and_then(|exchange| exchange.receive(from, &mut self.batch));
            let Some(message) = received else { break };
            moved += self.batch.len();
            let begin = *clock;
            let now = self.time(begin);
            let port = match message {
                Message::Crowded(port) => {
                    let is_crowded = self.batch.frames().last().is_some_and(|frame| frame == [1]);
                    self.note_crowded_elsewhere(port, is_crowded);
                    port
                }
                Message::Lost => {
                    self.count_lost_elsewhere();
                    self.batch.clear();
                    continue;
                }
                Message::Received(port) => {
                    self.batch.clear_tags(SHARD_BITS);
                    self.pass_translated(port);
                    self.switch_batch(port, now);
                    port
                }
                Message::Translated(port) => {
                    self.switch_batch(port, now);
                    port
                }
                Message::Deliver(port) => {
                    self.deliver(port);
                    port
                }
                Message::Learned(port) => {
                    let addresses = self.batch.frames().filter_map(|frame| frame.first_chunk());
                    let forward = self.switch.forward_mut();
                    addresses.for_each(|address| forward.learn_elsewhere(MacAddr(*address), port, now));
                    port
                }
            };
            *clock = Instant::now();
            if let Some(slot) = running_slot(&mut self.slots, port) {
                slot.cost.time += clock.duration_since(begin);
                slot.cost.visits += 1;
            }
            self.batch.clear();
            if moved >= MAX_GROUPS * QUANTUM {
                break;
            }
        }
        moved
    }

    /// Sends the frames of the batch to a port that this shard drives.
    fn deliver(&mut self, to: PortId) {
        let frames: Vec<u32> = (0..self.batch.len() as u32).collect();
        let Some(target) = running_slot(&mut self.slots, to) else {
            self.switch.lost(to, Reason::DOWN, frames.len() as u64);
            self.report_lost(&frames);
            return;
        };
        let sent = target.driver.send(&self.batch, &frames);
        let is_crowded = sent.as_ref().is_ok_and(|sent| sent.is_crowded);
        let count = sent.as_ref().map_or(0, |sent| sent.frames);
        let (_, lost) = match count < frames.len() as u64 {
            true => part_sent(&*target.driver, &frames, count),
            false => Default::default(),
        };
        count_sent(&mut self.switch, target, to, frames.len() as u64, sent);
        if is_crowded {
            self.note_crowded_by_others(to);
        }
        self.report_lost(&lost);
    }

    /// Reports frames of other shards that did not reach the function that they were for.
    fn report_lost(&mut self, frames: &[u32]) {
        let Some(exchange) = &mut self.exchange else { return };
        let tags = frames.iter().map(|number| self.batch.tag(*number as usize)).filter(|tag| *tag != 0);
        tags.for_each(|tag| exchange.note_lost(tag));
    }

    /// Counts frames of this shard that another one lost on the way to a function.
    fn count_lost_elsewhere(&mut self) {
        for (number, frame) in self.batch.frames().enumerate() {
            let tag = without_shard(self.batch.tag(number));
            let count = frame.first_chunk().map_or(0, |count| u32::from_ne_bytes(*count));
            self.switch.forward_mut().count_lost(tag, count.into());
        }
    }
}
