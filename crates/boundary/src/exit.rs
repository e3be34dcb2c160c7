//! Exits of a box: the two I/O ports of a virtual machine, the exit statuses and descriptors of a process.

/// The I/O port of an ordinary exit; its byte is one of [`IDLE`], [`TURN_OVER`], [`STOPPED`],
/// [`RING`] and [`RING_MAILBOX`].
pub const EXIT_PORT: u16 = 0x10;

/// The I/O port of a final exit: the crash page says why.
pub const CRASH_PORT: u16 = 0x11;

/// Nothing to do: the sleep flags are set.
pub const IDLE: u8 = 0;

/// The quantum is used up; there is more to do.
pub const TURN_OVER: u8 = 1;

/// The box has stopped as the host requested.
pub const STOPPED: u8 = 2;

/// The host of the ports sleeps although the box has published work. The box continues when it is entered again.
pub const RING: u8 = 3;

/// The caller at the mailbox sleeps although there is a reply, or room for its request. The box continues when it is
/// entered again.
pub const RING_MAILBOX: u8 = 4;

/// Exit status of a process whose crash page says why it ended.
pub const CRASHED_STATUS: i32 = 70;

/// Exit status of a process whose set-up failed; the number of the step is added.
pub const SETUP_STATUS: i32 = 80;

/// The descriptor of the shared region of a process.
pub const REGION_DESCRIPTOR: i32 = 3;

/// The descriptor of the eventfd with which a process wakes the host of its ports, if it has one.
pub const WAKE_EVENT_DESCRIPTOR: i32 = 4;

/// The descriptor of the eventfd with which a process wakes the caller at its mailbox. It follows the other event: a
/// process closes all descriptors but these two.
pub const MAILBOX_EVENT_DESCRIPTOR: i32 = WAKE_EVENT_DESCRIPTOR + 1;

/// The descriptor of the snapshot from which a process resumes: a 64-bit count of pages, then for each page its 64-bit
/// address and 4,096 bytes.
pub const SNAPSHOT_DESCRIPTOR: i32 = 6;

/// The descriptor of the packet pool that a process shares with other boxes, if it does.
pub const POOL_DESCRIPTOR: i32 = 7;
