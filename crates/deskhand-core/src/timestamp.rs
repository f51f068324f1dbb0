//! Moments as records spell them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment as RFC 3339 has it, in UTC, to the millisecond.
pub fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let whole = rfc3339_seconds(since.as_secs());
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), since.subsec_millis())
}

/// Seconds since 1970 as RFC 3339 has them, in UTC. The days are counted in years that begin with March, so that the leap
/// day is the last of its year (<https://howardhinnant.github.io/date_algorithms.html>).
pub fn rfc3339_seconds(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468; // from the 1st of March of the year 0
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The time since 1970 of a moment that [`rfc3339`] has written.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, separator: char| -> Option<[u64; 3]> {
        let mut parts = text.split(separator).map(|part| part.parse::<u64>().ok());
        let three = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(three)
    };
    let [year, month, day] = numbers(date, '-')?;
    let (clock, millis) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin with March, as above.
    let (year, shifted) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Duration::from_secs(seconds) + Duration::from_millis(millis.parse().ok()?))
}

/// Milliseconds since 1970 of a moment that [`rfc3339`] wrote; `None` for anything else.
pub fn milliseconds(moment: &str) -> Option<i64> {
    let digits = |from: usize, to: usize| moment.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second, milli) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?, digits(20, 23)?);
    // Years begin with March, as above.
    let shifted = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * shifted + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_milliseconds() {
        let at = UNIX_EPOCH + Duration::from_millis(951_782_400_007);
        assert_eq!(rfc3339(at), "2000-02-29T00:00:00.007Z");
        for milli in [0, 951_782_400_007, 1_767_225_599_999, 1_796_078_386_363] {
            let text = rfc3339(UNIX_EPOCH + Duration::from_millis(milli));
            assert_eq!(milliseconds(&text), i64::try_from(milli).ok(), "{text}");
        }
        assert_eq!(milliseconds("yesterday"), None);
        for millis in [0, 951_782_400_007, 951_868_799_999, 1_796_000_000_123] {
            let since = Duration::from_millis(millis);
            assert_eq!(parse(&rfc3339(UNIX_EPOCH + since)), Some(since));
        }
        assert_eq!(parse("yesterday"), None);
    }
}
