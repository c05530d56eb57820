//! Names that pages are purged by: Cache-Tag (separated by commas), Surrogate-Key and xkey
//! (separated by white space).
//!
//! Read when a response is stored, and from purges. Case counts.

use crate::list;
use crate::message::Fields;

/// More tags than this on one response are not read: it can still be purged otherwise.
const TAGS_MAX: usize = 1000;

/// The tags of a response, in order.
pub fn tags<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    let by_commas = fields.all("cache-tag").flat_map(list::elements);
    let by_space = ["surrogate-key", "xkey"].into_iter().flat_map(move |name| {
        fields.all(name).flat_map(|value| value.split(|byte| b" \t,".contains(byte)))
    });
    by_commas.chain(by_space).filter(|tag| !tag.is_empty()).take(TAGS_MAX)
}

/// A tag as entries have it: FNV-1a, which is the same in every process, so that what is on disk can
/// be purged. Two tags with one hash are purged together.
pub(crate) fn hash(tag: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    tag.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
