//! How a box leaves: the only two doors of a virtual machine, and the codes of a process.

/// The I/O port of an ordinary leave; its byte is one of [`IDLE`], [`TURN_OVER`], [`STOPPED`] and [`RING`].
pub const EXIT_PORT: u16 = 0x10;

/// The I/O port of a leave for ever: the crash page says why.
pub const CRASH_PORT: u16 = 0x11;

/// Nothing to do; sleep flags are set.
pub const IDLE: u8 = 0;

/// The quantum is used up; there is more to do.
pub const TURN_OVER: u8 = 1;

/// The wish to stop was obeyed.
pub const STOPPED: u8 = 2;

/// The host sleeps beside work that the box has published; the box goes on when it is entered again.
pub const RING: u8 = 3;

/// Exit status of a process whose crash page says why it ended.
pub const CRASHED_STATUS: i32 = 70;

/// Exit status of a process that couldn't set itself up; the step is added to it.
pub const SETUP_STATUS: i32 = 80;

/// The descriptor under which a process finds its shared area.
pub const REGION_DESCRIPTOR: i32 = 3;

/// The descriptor of the counter (eventfd) by which a process rings for its host.
pub const BELL_DESCRIPTOR: i32 = 4;

/// The descriptor under which a process that is a copy finds the memory to go on with: a 64-bit count of
/// pages, then each page's 64-bit address and its 4,096 bytes.
pub const SNAPSHOT_DESCRIPTOR: i32 = 5;

/// The descriptor under which a process finds the packet pool that it shares with others, if it does.
pub const POOL_DESCRIPTOR: i32 = 6;
