//! Secrets and miner ids, replaced in any text.
//!
//! Not a proof that a text has no other secret. The invariant: the same miner id has the same
//! name in all texts of a bundle, so that they can still be compared.

use std::collections::BTreeMap;

const REDACTED: &str = "REDACTED";

/// The words before a miner id in the name of a job, as Curio and `cuzk submit` name jobs. A
/// further part must follow, which tells such a name from that of a circuit.
const JOBS: [&str; 7] = [
    "porep-",
    "snap-",
    "wdpost-",
    "winpost-",
    "snap-deals-",
    "window-post-",
    "winning-post-",
];

/// The letters before a miner id in an address.
const ADDRESSES: [&str; 2] = ["f0", "t0"];

/// Keys whose value is a miner id.
const MINER_KEYS: [&str; 3] = ["miner_id", "minerId", "miner"];

/// The words before a secret that ends with the word.
const SECRETS: [&str; 5] = ["Bearer ", "bearer ", "token=", "password=", "secret="];

/// Replaces secrets and miner ids.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    /// The numbers of the miner ids, in the order in which they were met.
    miners: BTreeMap<String, usize>,
}

impl Redactor {
    /// Returns the text without secrets and miner ids.
    pub(super) fn redact(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut in_key = false;
        for line in text.split_inclusive('\n') {
            let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
            if begins {
                out.push_str("REDACTED PRIVATE KEY\n");
            }
            if !begins && !in_key {
                self.line(line, &mut out);
            }
            in_key = (in_key || begins) && !line.contains("-----END");
        }
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let mut rest = line;
        let mut before = ' ';
        while let Some(letter) = rest.chars().next() {
            let at_word = !before.is_ascii_alphanumeric();
            let step = at_word.then(|| self.word(rest, out)).flatten();
            let step = step.or_else(|| url(rest, out)).unwrap_or_else(|| {
                out.push(letter);
                letter.len_utf8()
            });
            before = rest[..step].chars().next_back().unwrap_or(letter);
            rest = &rest[step..];
        }
    }

    /// Replaces a secret or a miner id at the start of `rest`. Returns the bytes that were
    /// read; none if there is nothing to replace.
    fn word(&mut self, rest: &str, out: &mut String) -> Option<usize> {
        if let Some(start) = SECRETS.iter().find(|start| rest.starts_with(**start)) {
            let secret = &rest[start.len()..];
            let end =
                secret.find(|letter: char| letter.is_whitespace() || "\"'&,;".contains(letter));
            out.push_str(start);
            out.push_str(REDACTED);
            return Some(start.len() + end.unwrap_or(secret.len()));
        }
        let (start, digits) = miner(rest)?;
        out.push_str(&rest[..start]);
        let next = self.miners.len() + 1;
        let number = self.miners.entry(digits.to_owned()).or_insert(next);
        out.push_str(&format!("MINER{number}"));
        Some(start + digits.len())
    }
}

/// Returns where the digits of a miner id begin, and the digits; none if `rest` does not begin
/// with one.
fn miner(rest: &str) -> Option<(usize, &str)> {
    let digits_at = |start: usize| {
        let after = &rest[start..];
        let end = after.find(|letter: char| !letter.is_ascii_digit());
        let end = end.unwrap_or(after.len());
        (end > 0).then(|| (&after[..end], after[end..].chars().next()))
    };
    let begins = |all: &[&'static str]| {
        let fitting = all.iter().copied().filter(|start| rest.starts_with(start));
        fitting.max_by_key(|start| start.len())
    };
    if let Some(start) = begins(&JOBS) {
        let (digits, next) = digits_at(start.len())?;
        return (next == Some('-')).then_some((start.len(), digits));
    }
    if let Some(start) = begins(&ADDRESSES) {
        let (digits, next) = digits_at(start.len())?;
        let is_whole = !next.is_some_and(|next| next.is_ascii_alphanumeric());
        return (is_whole && digits.len() > 1).then_some((start.len(), digits));
    }
    let key = begins(&MINER_KEYS)?;
    let between = rest[key.len()..].find(|letter: char| letter.is_ascii_alphanumeric())?;
    let start = key.len() + between;
    let is_value = rest[key.len()..start].contains(['=', ':']);
    let (digits, _) = digits_at(start)?;
    is_value.then_some((start, digits))
}

/// Replaces the user and the password of an address at the start of `rest`. A password may have any
/// letter but a blank and a double quote, so all is replaced up to the last `@` before these. Of an
/// address with an `@` in its path, too much is replaced.
fn url(rest: &str, out: &mut String) -> Option<usize> {
    let after = rest.strip_prefix("://")?;
    let end = after.find(|letter: char| letter.is_whitespace() || letter == '"');
    let address = &after[..end.unwrap_or(after.len())];
    let at = address.rfind('@')?;
    // It is the path of a socket or of a file.
    if address.starts_with('/') {
        return None;
    }
    out.push_str("://");
    out.push_str(REDACTED);
    Some("://".len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn miner_ids_have_the_same_name_everywhere() {
        let mut redactor = Redactor::default();
        let mut redact = |text: &str| redactor.redact(text);
        assert_eq!(
            redact("job porep-1234-56 ended"),
            "job porep-MINER1-56 ended"
        );
        assert_eq!(
            redact("\"job_id\":\"ps-snap-1234-7-8\""),
            "\"job_id\":\"ps-snap-MINER1-7-8\""
        );
        assert_eq!(redact("wdpost-77-0-[1 2]"), "wdpost-MINER2-0-[1 2]");
        for kind in ["window-post", "winning-post", "snap-deals"] {
            let id = format!("{kind}-77-0-[1 2]/a7fe");
            assert_eq!(redact(&id), format!("{kind}-MINER2-0-[1 2]/a7fe"));
        }
        assert_eq!(redact("{\"miner_id\": 1234}"), "{\"miner_id\": MINER1}");
        assert_eq!(
            redact("miner=77 f01234, t077"),
            "miner=MINER2 f0MINER1, t0MINER2"
        );
    }

    #[test]
    fn what_is_no_miner_id_stays() {
        let mut redactor = Redactor::default();
        for text in [
            "porep-32GiB and porep-32g",
            "winning-post-2KiB",
            "0.125 s, f0, t0x, f01",
            "miner, 1234",
            "tokens = \"/etc/cuzk/tokens\"\n",
            "https://example.com/p?a=b",
            "\"https://example.com\", \"me@example.com\"",
            "unix:///run/a@b/c",
            "größer",
        ] {
            assert_eq!(redactor.redact(text), text);
        }
    }

    #[test]
    fn secrets_are_replaced() {
        let mut redactor = Redactor::default();
        let mut redact = |text: &str| redactor.redact(text);
        let header = "authorization: Bearer abc.def\", next";
        assert_eq!(redact(header), "authorization: Bearer REDACTED\", next");
        let url = "sources = [\"https://me:secret@host/p?token=xyz&a=1\"]";
        let expected = "sources = [\"https://REDACTED@host/p?token=REDACTED&a=1\"]";
        assert_eq!(redact(url), expected);
        for password in [
            "pa/ss", "/", "pa#ss", "pa?ss", "p@ss", "p@/#?@", "p'ss", "12/a",
        ] {
            for (before, after) in [
                ("https://", ""),
                ("x 'tcp://", ":1/p#f' y"),
                ("[\"http://", "/\", 1]"),
            ] {
                let text = format!("{before}me:{password}@host{after}");
                let expected = format!("{before}REDACTED@host{after}");
                assert_eq!(redact(&text), expected);
            }
        }
        let key = "a\n-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nb\n";
        assert_eq!(redact(key), "a\nREDACTED PRIVATE KEY\nb\n");
    }
}
