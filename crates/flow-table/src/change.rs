//! Changes of the flow entries: what a flow modification message states, and how it can fail.

use std::fmt;
use std::time::Duration;

use crate::{ActionError, Instructions, Match};

/// What a change does (OpenFlow 1.3.5, 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Adds an entry; it replaces the one with the same match and priority.
    Add,
    /// Replaces the instructions of all entries that the match contains.
    Modify,
    /// Replaces the instructions of the entry with the same match and priority.
    ModifyStrict,
    /// Removes all entries that the match contains.
    Delete,
    /// Removes the entry with the same match and priority.
    DeleteStrict,
}

/// Flags of a change and of the entry that it adds (`OFPFF_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct EntryFlags {
    /// Whether the controller is told when the entry is removed (`OFPFF_SEND_FLOW_REM`).
    pub send_removed: bool,
    /// Whether an entry that overlaps another of the same priority is refused, an equal one too (`OFPFF_CHECK_OVERLAP`).
    pub check_overlap: bool,
    /// Whether the counters of a replaced or modified entry are cleared (`OFPFF_RESET_COUNTS`).
    pub reset_counts: bool,
    /// Whether packets are not counted (`OFPFF_NO_PKT_COUNTS`). Counters that are not kept are [`NOT_COUNTED`].
    pub no_packet_counts: bool,
    /// Whether bytes are not counted (`OFPFF_NO_BYT_COUNTS`).
    pub no_byte_counts: bool,
}

/// The value of a counter that is not kept (OpenFlow 1.3.5, 5.8).
pub const NOT_COUNTED: u64 = u64::MAX;

impl EntryFlags {
    /// Counters of packets and bytes as they are reported.
    #[must_use]
    pub(crate) fn counters(self, packets: u64, bytes: u64) -> (u64, u64) {
        let kept = |is_not: bool, count: u64| if is_not { NOT_COUNTED } else { count };
        (kept(self.no_packet_counts, packets), kept(self.no_byte_counts, bytes))
    }
}

/// Who adds entries. Changes of one owner neither modify, replace nor delete the entries of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Owner(pub u8);

/// A change of the flow entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose change it is. Not part of the message: the switch states it.
    pub owner: Owner,
    /// What to do.
    pub command: Command,
    /// The table; `None` (`OFPTT_ALL`) for all, which only deletions may state.
    pub table: Option<u8>,
    /// The match of the entry, or the match that contains those of the entries to change.
    pub matching: Match,
    /// Entries of higher priority are preferred. A table-miss entry has priority 0 and matches everything (5.4).
    pub priority: u16,
    /// The instructions of the entry.
    pub instructions: Instructions,
    /// A number that the controller chooses. It can select entries with it.
    pub cookie: u64,
    /// Bits of the cookie that an entry must share with `cookie` to be modified or deleted.
    pub cookie_mask: u64,
    /// Time without packets after which the entry is removed.
    pub idle_timeout: Option<Duration>,
    /// Time after which the entry is removed.
    pub hard_timeout: Option<Duration>,
    /// Flags.
    pub flags: EntryFlags,
    /// Restricts a deletion to entries that output to this port.
    pub out_port: Option<u32>,
    /// Restricts a deletion to entries that use this group.
    pub out_group: Option<u32>,
}

impl Change {
    /// A change of table 0 with default values.
    #[must_use]
    pub fn new(command: Command, matching: Match, priority: u16) -> Self {
        Self {
            owner: Owner::default(),
            command,
            table: Some(0),
            matching,
            priority,
            instructions: Instructions::default(),
            cookie: 0,
            cookie_mask: 0,
            idle_timeout: None,
            hard_timeout: None,
            flags: EntryFlags::default(),
            out_port: None,
            out_group: None,
        }
    }
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// Whether an entry was added. A replaced entry counts too.
    pub added: bool,
    /// Number of entries whose instructions were replaced.
    pub modified: usize,
    /// The deleted entries.
    pub removed: Vec<FlowRemoved>,
}

/// The reason why an entry was removed (OpenFlow 1.3.5, 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// It had no packet for its idle timeout.
    IdleTimeout,
    /// Its hard timeout passed.
    HardTimeout,
    /// A change deleted it.
    Delete,
    /// A group that it used was deleted.
    GroupDelete,
}

/// An entry that was removed, with its last counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// Why it was removed.
    pub reason: RemovalReason,
    /// Its table.
    pub table: u8,
    /// Its match.
    pub matching: Match,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its idle timeout.
    pub idle_timeout: Option<Duration>,
    /// Its hard timeout.
    pub hard_timeout: Option<Duration>,
    /// Time for which it existed.
    pub age: Duration,
    /// Packets that it matched; [`NOT_COUNTED`] if its flags say so.
    pub packets: u64,
    /// Bytes of those packets, or the same.
    pub bytes: u64,
    /// Whether the controller asked to be told.
    pub send_removed: bool,
}

impl FlowRemoved {
    /// Adds the counters of the same entry in another pipeline.
    pub fn add_counters(&mut self, other: &Self) {
        // Counters that are not kept stay so.
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The reason why a change is refused. Nothing is changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowModError {
    /// There is no such table, or only a deletion may concern all tables (`OFPFMFC_BAD_TABLE_ID`).
    BadTable,
    /// The pipeline has as many entries as its limits permit (`OFPFMFC_TABLE_FULL`).
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// The entries of the table have as many different sets of masked fields as the limits permit
    /// (`OFPFMFC_TABLE_FULL`).
    TooManyMasks {
        /// The limit.
        limit: usize,
    },
    /// The entries take as much memory as the limits permit (`OFPFMFC_TABLE_FULL`).
    TooManyBytes {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Another entry of the same priority can match the same packet (`OFPFMFC_OVERLAP`).
    Overlap,
    /// The entry with this match and priority belongs to another owner (`OFPFMFC_EPERM`).
    OtherOwner,
    /// A timeout is zero (`OFPFMFC_BAD_TIMEOUT`).
    BadTimeout,
    /// The goto instruction names this table or an earlier one, or one that does not exist (`OFPBIC_BAD_TABLE_ID`).
    BadGoto {
        /// The table of the entry.
        from: u8,
        /// The table to go to.
        to: u8,
    },
    /// An action is refused.
    Action(ActionError),
}

impl fmt::Display for FlowModError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadTable => formatter.write_str("there is no such table"),
            Self::TooManyEntries { limit } => {
                write!(formatter, "there are already {limit} entries, the limit")
            }
            Self::TooManyMasks { limit } => write!(
                formatter,
                "the entries of the table already use {limit} combinations of masks, the limit; use those of other \
                 entries"
            ),
            Self::TooManyBytes { limit } => {
                write!(formatter, "the entries would take more than {limit} bytes, the limit")
            }
            Self::Overlap => formatter.write_str("an entry of the same priority can match the same packet"),
            Self::OtherOwner => {
                formatter.write_str("another owner has an entry with this match and priority")
            }
            Self::BadTimeout => formatter.write_str("a timeout is zero"),
            Self::BadGoto { from, to } => {
                write!(formatter, "table {from} can't continue in table {to}: only later tables, below 64")
            }
            Self::Action(_) => formatter.write_str("an action is refused"),
        }
    }
}

impl std::error::Error for FlowModError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Action(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ActionError> for FlowModError {
    fn from(error: ActionError) -> Self {
        Self::Action(error)
    }
}
