//! Private parsers for fuzz targets. Compiled only with `--cfg fuzzing`.

use crate::shared_tier::PurgeMessage;

/// The number of a purge that another gateway published.
pub fn purge_message(text: &[u8]) -> Option<u64> {
    PurgeMessage::decoded(text).map(|message| message.generation)
}
