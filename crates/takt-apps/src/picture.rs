//! Pictures of frames: hashes, and files to look at.

use std::fs;
use std::io;
use std::path::Path;

/// FNV-1a over 64 bits, continued from `hash`.
pub(crate) fn hash(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    bytes.iter().fold(hash, step)
}

/// What a hash begins with.
pub(crate) const HASH_START: u64 = 0xCBF2_9CE4_8422_2325;

/// Writes RGBA rows from the bottom up, as GL reads them, without the alpha.
pub(crate) fn save(path: &Path, size: (u32, u32), pixels: &[u8]) -> io::Result<()> {
    let rows = || pixels.chunks_exact(size.0 as usize * 4).rev();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let file = match extension.to_ascii_lowercase().as_str() {
        "png" => png(size, rows()),
        "ppm" => ppm(size, rows()),
        _ => {
            let message = "the name of a picture must end in .png or .ppm";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    fs::write(path, file)
}

fn opaque(row: &[u8]) -> impl Iterator<Item = u8> {
    row.as_chunks::<4>().0.iter().flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
}

fn ppm<'a>(size: (u32, u32), rows: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = format!("P6\n{} {}\n255\n", size.0, size.1).into_bytes();
    rows.for_each(|row| file.extend(opaque(row)));
    file
}

fn png<'a>(size: (u32, u32), rows: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut data = Vec::new();
    let mut above = vec![0; size.0 as usize * 3];
    for row in rows {
        let row: Vec<u8> = opaque(row).collect();
        // Filter 2: the difference to the row above, which is mostly zero.
        data.push(2);
        data.extend(row.iter().zip(&above).map(|(now, above)| now.wrapping_sub(*above)));
        above = row;
    }
    let mut header = Vec::new();
    header.extend(size.0.to_be_bytes());
    header.extend(size.1.to_be_bytes());
    // Eight bits per channel, RGB, and the only compression, filtering and order there is.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, *b"IHDR", &header);
    chunk(&mut file, *b"IDAT", &zlib(&data));
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).expect("pictures are smaller than 4 GiB").to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    file.extend(crc(&file[start..]).to_be_bytes());
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    };
    !bytes.iter().fold(!0, step)
}

fn adler(bytes: &[u8]) -> u32 {
    let step = |(a, b): (u32, u32), &byte: &u8| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    };
    let (a, b) = bytes.iter().fold((1, 0), step);
    b << 16 | a
}

/// Compresses repeated bytes, with the codes that the format fixes: simple, and enough for pictures
/// with large plain areas.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x78, 0x01], pending: 0, count: 0 };
    // The last block, with fixed codes.
    bits.put(0b011, 3);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let repeats = |at: usize| bytes[at..].iter().take(RUN_MAX).take_while(|&&next| next == byte).count();
        let run = if at > 0 && bytes[at - 1] == byte { repeats(at) } else { 0 };
        if run >= RUN_MIN {
            bits.run(run);
            at += run;
        } else {
            bits.literal(u16::from(byte));
            at += 1;
        }
    }
    bits.literal(256);
    bits.put(0, 7);
    let mut file = bits.bytes;
    file.extend(adler(bytes).to_be_bytes());
    file
}

/// Lengths that the format can express.
const RUN_MIN: usize = 3;
const RUN_MAX: usize = 258;

struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    /// Appends bits, the lowest first; zero bits at the end fill up a byte.
    fn put(&mut self, value: u32, count: u32) {
        self.pending |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push((self.pending & 0xFF) as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Appends a code, the highest bit first.
    fn code(&mut self, code: u32, count: u32) {
        self.put(code.reverse_bits() >> (32 - count), count);
    }

    fn literal(&mut self, symbol: u16) {
        let symbol = u32::from(symbol);
        match symbol {
            0..=143 => self.code(0x30 + symbol, 8),
            144..=255 => self.code(0x190 + symbol - 144, 9),
            256..=279 => self.code(symbol - 256, 7),
            _ => self.code(0xC0 + symbol - 280, 8),
        }
    }

    /// Repeats the byte before.
    fn run(&mut self, length: usize) {
        let length = u32::try_from(length).expect("runs are short");
        let (symbol, extra, count) = match length {
            258 => (285, 0, 0),
            3..=10 => (254 + length, 0, 0),
            _ => {
                // Groups of four symbols, each group with one more extra bit.
                let group = (length - 3).ilog2() - 2;
                let offset = length - 3 - (4 << group);
                (261 + 4 * group + (offset >> group), offset & ((1 << group) - 1), group)
            }
        };
        self.literal(u16::try_from(symbol).expect("symbols are small"));
        self.put(extra, count);
        // Distance 1.
        self.code(0, 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc(b"123456789"), 0xCBF4_3926);
        assert_eq!(adler(b"Wikipedia"), 0x11E6_0398);
        assert_eq!(hash(HASH_START, b"a"), 0xAF63_DC4C_8601_EC8C);
    }

    #[test]
    fn compression_is_undone_by_the_rules_of_the_format() {
        let mut data: Vec<u8> = (0..=255).collect();
        for run in [1, 2, 3, 4, 10, 11, 12, 13, 18, 19, 34, 35, 66, 67, 130, 131, 257, 258, 259, 600] {
            data.extend(std::iter::repeat_n(7, run));
            data.push(9);
        }
        let packed = zlib(&data);
        assert!(packed.len() < data.len());
        assert_eq!(inflate(&packed), data);
    }

    /// Undoes `zlib`, one bit at a time, after the text of the format's definition.
    fn inflate(packed: &[u8]) -> Vec<u8> {
        let mut at = 16;
        let mut bit = || {
            at += 1;
            u32::from(packed[(at - 1) / 8] >> ((at - 1) % 8) & 1)
        };
        assert_eq!([bit(), bit(), bit()], [1, 1, 0]);
        let mut out: Vec<u8> = Vec::new();
        loop {
            let mut code = (0..7).fold(0, |code, _| code << 1 | bit());
            let symbol = if code <= 0x17 {
                256 + code
            } else {
                code = code << 1 | bit();
                match code {
                    0x30..=0xBF => code - 0x30,
                    0xC0..=0xC7 => 280 + code - 0xC0,
                    _ => (code << 1 | bit()) - 0x190 + 144,
                }
            };
            if symbol < 256 {
                out.push(u8::try_from(symbol).unwrap());
            } else if symbol == 256 {
                return out;
            } else {
                let base = [
                    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
                    131, 163, 195, 227, 258,
                ];
                let index = (symbol - 257) as usize;
                let count = if !(8..28).contains(&index) { 0 } else { index / 4 - 1 };
                let extra = (0..count).fold(0, |extra, place| extra | bit() << place);
                assert_eq!((0..5).map(|_| bit()).sum::<u32>(), 0, "distance 1");
                let last = *out.last().unwrap();
                out.extend(std::iter::repeat_n(last, base[index] + extra as usize));
            }
        }
    }
}
