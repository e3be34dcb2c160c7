//! Changing bytes, lengths and annotations.

use element::Class;

mod adjusttimestamp;
mod align;
mod checkcrc32;
mod checklength;
mod checkpaint;
mod clipboard;
mod dropbroadcasts;
mod markmacheader;
mod pad;
mod paint;
mod resize;
mod setannobyte;
mod setcrc32;
mod setpackettype;
mod settimestamp;
mod settimestampdelta;
mod storedata;
mod strip;
mod striptonetworkheader;
mod timefilter;
mod truncate;
mod unstrip;

pub use adjusttimestamp::AdjustTimestamp;
pub use align::Align;
pub use checkcrc32::CheckCRC32;
pub use checklength::CheckLength;
pub use checkpaint::CheckPaint;
pub use clipboard::Clipboard;
pub use dropbroadcasts::DropBroadcasts;
pub use markmacheader::MarkMACHeader;
pub use pad::Pad;
pub use paint::Paint;
pub use resize::Resize;
pub use setannobyte::SetAnnoByte;
pub use setcrc32::SetCRC32;
pub use setpackettype::SetPacketType;
pub use settimestamp::SetTimestamp;
pub use settimestampdelta::SetTimestampDelta;
pub use storedata::StoreData;
pub use strip::Strip;
pub(crate) use strip::strip;
pub use striptonetworkheader::StripToNetworkHeader;
pub use timefilter::TimeFilter;
pub use truncate::Truncate;
pub use unstrip::Unstrip;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Strip>(),
    Class::of::<Unstrip>(),
    Class::of::<StripToNetworkHeader>(),
    Class::of::<Truncate>(),
    Class::of::<Pad>(),
    Class::of::<Resize>(),
    Class::of::<Align>(),
    Class::of::<StoreData>(),
    Class::of::<CheckLength>(),
    Class::of::<Paint>(),
    Class::of::<CheckPaint>(),
    Class::of::<SetAnnoByte>(),
    Class::of::<SetTimestamp>(),
    Class::of::<SetPacketType>(),
    Class::of::<DropBroadcasts>(),
    Class::of::<SetCRC32>(),
    Class::of::<CheckCRC32>(),
    Class::of::<MarkMACHeader>(),
    Class::of::<AdjustTimestamp>(),
    Class::of::<SetTimestampDelta>(),
    Class::of::<TimeFilter>(),
    Class::of::<Clipboard>(),
];
