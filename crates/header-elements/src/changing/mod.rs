//! Changes of packet data, lengths and annotations.

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

element::classes![
    Strip,
    Unstrip,
    StripToNetworkHeader,
    Truncate,
    Pad,
    Resize,
    Align,
    StoreData,
    CheckLength,
    Paint,
    CheckPaint,
    SetAnnoByte,
    SetTimestamp,
    SetPacketType,
    DropBroadcasts,
    SetCRC32,
    CheckCRC32,
    MarkMACHeader,
    AdjustTimestamp,
    SetTimestampDelta,
    TimeFilter,
    Clipboard,
];
