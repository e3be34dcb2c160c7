//! What the memory of a box is made of.

use crate::boxes::test_bed::{Backend, REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::{BoxProgram, TableKind};
use crate::error::MeasureError;
use crate::statistics::rounded;
use boundary::{RegionLayout, Request, Slots, Stats, control};
use serde::Serialize;
use std::time::Duration;

/// How long the largest table may take to be installed.
const INSTALL_TIME: Duration = Duration::from_secs(60);

/// Rings that the ClickOS paper's TableKind 3 lists.
const RINGS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];

/// What the memory of a box is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// What ports take, for each number of slots.
    pub rings: Vec<RingMemory>,
    /// The mailbox, boot, status and crash pages of a box, in kilobytes.
    pub control_kb: usize,
    /// What entries of tables add, where boxes run Click over a heap of their own: not in threads.
    pub tables: Vec<TableMemory>,
}

/// What the entries of a table add to a box.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableMemory {
    /// Routes, rules or patterns.
    pub entries: &'static str,
    /// How many.
    pub count: u32,
    /// What a box with so many has on its heap beyond what one with a single entry has, in kilobytes: the table, and
    /// the text of the configuration, which the box keeps.
    #[serde(serialize_with = "rounded")]
    pub adds_kb: f64,
    /// Of that the text's.
    #[serde(serialize_with = "rounded")]
    pub text_kb: f64,
    /// Private memory of the box without its rings, as its host sees it: what installing took for a while is in it.
    #[serde(serialize_with = "rounded")]
    pub private_kb: f64,
}

/// What one port takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RingMemory {
    /// Slots of each of its two rings.
    pub ring: u32,
    /// Both rings and their buffers, in kilobytes.
    pub kb: usize,
}

/// The memory of ports of all sizes, and of tables in boxes of a test bed: of so many routes, as many rules, and two
/// patterns for five of them, as in the ClickOS paper, which had a thousand.
pub fn memory(bed: &TestBed, entries: u32) -> Result<Memory, MeasureError> {
    let tables = match (bed.backend(), bed.box_program()) {
        (Backend::Vm | Backend::Process, BoxProgram::Click) => {
            TableKind::ALL.into_iter().map(|table| measure(bed, table, entries)).collect::<Result<_, _>>()?
        }
        _ => Vec::new(),
    };
    Ok(Memory { tables, ..ports()? })
}

fn measure(bed: &TestBed, table: TableKind, entries: u32) -> Result<TableMemory, MeasureError> {
    let count = table.count(entries);
    let (one, many) = (table.configuration(1), table.configuration(count));
    let ((few, _), (all, private)) = (filled(bed, &one)?, filled(bed, &many)?);
    let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
    Ok(TableMemory {
        entries: table.entries(),
        count,
        adds_kb: kilobytes(all.saturating_sub(few)),
        text_kb: kilobytes((many.len() - one.len()) as u64),
        private_kb: kilobytes(private as u64),
    })
}

/// Bytes that a box with a configuration uses of its heap, and those that are private to it.
fn filled(bed: &TestBed, configuration: &str) -> Result<(u64, usize), MeasureError> {
    let mut sandbox = bed.create(&TestBed::roomy())?;
    bed.start(&mut sandbox)?;
    sandbox.install("", configuration, INSTALL_TIME)?;
    let reply = sandbox.call(&Request::Stats, REPLY_TIMEOUT)?;
    let stats = Stats::decode(&reply).map_err(sandbox::CallError::Reply)?;
    Ok((stats.heap_used, sandbox.private_memory()?))
}

fn ports() -> Result<Memory, MeasureError> {
    let port = |ring| -> Result<RingMemory, MeasureError> {
        let layout = RegionLayout::new(&[Slots::new(ring)?])?;
        Ok(RingMemory { ring, kb: (layout.size - control::SIZE) / 1024 })
    };
    Ok(Memory {
        rings: RINGS.into_iter().map(port).collect::<Result<_, _>>()?,
        control_kb: control::SIZE / 1024,
        tables: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the paper, a slot of a port costs about 4 KB; the rings themselves round up to a few pages.
    #[test]
    fn a_slot_costs_four_kilobytes() {
        for RingMemory { ring, kb } in ports().unwrap().rings {
            let paper = 4 * ring as usize;
            assert!((paper..=paper + 40).contains(&kb), "{ring} slots: {kb} KB");
        }
    }
}
