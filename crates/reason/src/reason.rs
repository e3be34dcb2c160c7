//! A drop reason: a number of 16 bits.

/// Why a packet was dropped: an index into the list, or the number of a reason that a user's function declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(pub(crate) u16);

/// Numbers from here on stand for reasons that users' functions declare. Their names are known to the router that they
/// were declared to.
const FIRST_USER: u16 = 0x8000;

impl Reason {
    /// The place of a reason in the list; `None` for a user function's reason.
    pub const fn listed_number(self) -> Option<u16> {
        if self.0 < FIRST_USER { Some(self.0) } else { None }
    }

    /// The reason that a router's user functions have declared as number `number`.
    pub const fn user(number: u16) -> Reason {
        Reason(number | FIRST_USER)
    }

    /// The number of a user function's reason; `None` for one on the list.
    pub const fn user_number(self) -> Option<u16> {
        if self.0 >= FIRST_USER { Some(self.0 - FIRST_USER) } else { None }
    }
}
