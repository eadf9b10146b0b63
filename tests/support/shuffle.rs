//! The same configuration in another order: other files, other places in the files.

use super::compiled::Input;
use pilotfish::config::SourceFile;

/// A small generator of pseudo-random numbers (splitmix64); a seed replays a failure.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        usize::try_from(z % n as u64).expect("below a usize")
    }

    /// Another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The same files, told in another order.
pub fn files(input: &Input, random: &mut Random) -> Input {
    let mut shuffled = input.clone();
    random.shuffle(&mut shuffled.files);
    random.shuffle(&mut shuffled.secrets);
    shuffled
}

/// The same documents, dealt out to other files in another order.
pub fn documents(input: &Input, random: &mut Random) -> Input {
    let mut chunks: Vec<String> = input.files.iter().flat_map(|f| split(&f.text)).collect();
    random.shuffle(&mut chunks);
    let mut texts = vec![String::new(); 1 + random.below(chunks.len().max(1))];
    for chunk in chunks {
        let at = random.below(texts.len());
        texts[at].push_str("---\n");
        texts[at].push_str(&chunk);
        texts[at].push('\n');
    }
    let named = texts.into_iter().enumerate();
    let dealt = Input {
        files: named.map(|(i, text)| SourceFile::new(format!("{i}.yaml"), text)).collect(),
        ..input.clone()
    };
    files(&dealt, random)
}

/// The documents of a file as a user would cut them.
fn split(text: &str) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            chunks.push(String::new());
        } else if let Some(chunk) = chunks.last_mut() {
            chunk.push_str(line);
            chunk.push('\n');
        }
    }
    chunks.retain(|chunk| !chunk.trim().is_empty());
    chunks
}
