//! Speed of the reader on real PTX.

fn main() {
    divan::main();
}
