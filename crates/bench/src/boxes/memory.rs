//! The components of a box's memory.

use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::{BoxProgram, TableKind};
use crate::error::MeasureError;
use crate::statistics::rounded;
use boundary::{PlatformKind, RegionLayout, Request, Slots, Stats, control};
use serde::Serialize;
use std::time::Duration;

/// Time limit for installing the largest table.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The ring sizes in Table 3 of the ClickOS paper.
const RINGS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];

/// The components of a box's memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// The memory of a port, for each ring size.
    pub rings: Vec<RingMemory>,
    /// The mailbox, boot, status and crash pages of a box, in kilobytes.
    pub control_kb: usize,
    /// The memory of table entries. Only for boxes that run Click with a heap of their own, so not for threads.
    pub tables: Vec<TableMemory>,
}

/// The memory that the entries of a table add to a box.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableMemory {
    /// The kind of entry: routes, rules in the fast or the compact form, or patterns.
    pub entries: &'static str,
    /// Number of entries.
    pub count: u32,
    /// Heap of a box with this many entries minus that of a box with one entry, in kilobytes: the table, and the text
    /// of the configuration, which the box keeps.
    #[serde(serialize_with = "rounded")]
    pub adds_kb: f64,
    /// The part of the text.
    #[serde(serialize_with = "rounded")]
    pub text_kb: f64,
    /// Private memory of the box without its rings, as the host sees it. It includes memory that the installation used
    /// temporarily.
    #[serde(serialize_with = "rounded")]
    pub private_kb: f64,
}

/// The memory of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RingMemory {
    /// Slots of each of its two rings.
    pub ring: u32,
    /// Both rings and their buffers, in kilobytes.
    pub kb: usize,
}

/// Measures the memory of ports with all ring sizes, and of tables in boxes of a test bed: `entries` routes, as many
/// rules in each form, and two patterns for five of them. The ClickOS paper has 1,000.
pub fn memory(bed: &TestBed, entries: u32) -> Result<Memory, MeasureError> {
    let tables = match (bed.platform(), bed.box_program()) {
        (PlatformKind::Vm | PlatformKind::Process, BoxProgram::Click) => {
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

/// The heap usage of a box with a configuration, and its private memory, in bytes.
fn filled(bed: &TestBed, configuration: &str) -> Result<(u64, usize), MeasureError> {
    let mut sandbox = bed.create(&TestBed::settings_for_large_tables())?;
    bed.start(&mut sandbox)?;
    sandbox.install("", configuration, INSTALL_TIMEOUT)?;
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

    /// As in the paper, a slot of a port takes about 4 KB; the rings themselves are rounded up to a few pages.
    #[test]
    fn a_slot_costs_four_kilobytes() {
        for RingMemory { ring, kb } in ports().unwrap().rings {
            let paper = 4 * ring as usize;
            assert!((paper..=paper + 40).contains(&kb), "{ring} slots: {kb} KB");
        }
    }
}
