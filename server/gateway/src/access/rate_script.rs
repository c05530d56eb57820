//! The script by which the server of shared rate limits takes tokens, and its words.
//!
//! Used by [`super::rate_sharing`] alone. A bucket is a key with the time at which it is full, by the
//! server's clock in microseconds, which expires then. The script is one step of the server, so that gateways
//! cannot race; it needs Redis 5, because it reads the clock before it writes.

use outboard_access::{Entry, Granted};
use outboard_resp::Value;

/// For each key: the microseconds of a token, the tokens of a full bucket, tokens that were taken, and tokens
/// that are asked for. A debt of more than two full buckets is from a clock that was set back.
const SCRIPT: &[u8] = b"local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local out = {}
for i, key in ipairs(KEYS) do
  local token, burst = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2])
  local taken, asked = tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i])
  local full = token * burst
  local debt = (tonumber(redis.call('GET', key) or '0') or 0) - now
  debt = math.min(math.max(debt, 0), 2 * full)
  debt = math.max(debt + taken * token, 0)
  local granted = math.min(math.max(math.floor((full - debt) / token + 0.001), 0), asked)
  debt = debt + granted * token
  if debt > 0 then
    redis.call('SET', key, string.format('%.3f', now + debt), 'PX', math.ceil(debt / 1000) + 1000)
  else
    redis.call('DEL', key)
  end
  out[2 * i - 1], out[2 * i] = granted, math.ceil(debt)
end
return out";

/// The words of the command for a batch. `name` is the prefix of all keys.
pub(super) fn words(name: &str, batch: &[Entry]) -> Vec<Vec<u8>> {
    let mut words = vec![b"EVAL".to_vec(), SCRIPT.to_vec(), batch.len().to_string().into_bytes()];
    words.extend(batch.iter().map(|entry| {
        let id = u128::from_be_bytes(entry.id);
        format!("outboard:{name}:{id:032x}").into_bytes()
    }));
    for entry in batch {
        let token_us = entry.rate.token_ns() as f64 / 1_000.0;
        words.push(token_us.to_string().into_bytes());
        words.push(entry.rate.burst().to_string().into_bytes());
        words.push(entry.taken.to_string().into_bytes());
        words.push(entry.asked.to_string().into_bytes());
    }
    words
}

/// The reply about a batch of so many; `None` if it is none of the script.
pub(super) fn granted(reply: &Value, count: usize) -> Option<Vec<Granted>> {
    let numbers = reply.as_array()?.iter().map(|number| number.as_integer()?.try_into().ok());
    let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
    let pairs = numbers.as_chunks::<2>().0.iter().map(|[tokens, debt_us]| Granted {
        tokens: u32::try_from(*tokens).unwrap_or(u32::MAX),
        debt_ns: debt_us.saturating_mul(1_000),
    });
    (numbers.len() == 2 * count).then(|| pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_access::Rate;

    #[test]
    fn a_batch_has_keys_and_numbers() {
        let rate = Rate::new(3, 1_000, 9);
        let entry = Entry { id: [1; 16], rate, taken: -2, asked: 5 };
        let words = words("rates", &[entry, entry]);
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        assert_eq!(words[2], "2");
        assert_eq!(words[3], "outboard:rates:01010101010101010101010101010101");
        assert_eq!(words[5..9], ["333333.333", "9", "-2", "5"]);
        assert_eq!(words.len(), 3 + 2 + 8);
    }

    #[test]
    fn only_a_reply_for_every_key_is_used() {
        let reply = |numbers: &[i64]| {
            Value::Array(numbers.iter().map(|number| Value::Integer(*number)).collect())
        };
        let expected = vec![Granted { tokens: 2, debt_ns: 7_000 }];
        assert_eq!(granted(&reply(&[2, 7]), 1), Some(expected));
        for numbers in [&[2][..], &[2, 7, 1], &[2, -7], &[]] {
            assert_eq!(granted(&reply(numbers), 1), None, "{numbers:?}");
        }
        assert_eq!(granted(&Value::Integer(1), 1), None);
    }
}
