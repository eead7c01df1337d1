// What a microphone hears, as a WAV file. Browsers record into formats that the server does not read (WebM, MP4), so
// samples are taken as they come.

// What encoders of sounds work with; a browser that cannot change rates gives its own, and the server changes it.
const kRate = 16000;
// More than any model hears at once is no use: the server refuses it with the model's own limit.
const kSecondsMax = 300;

// One channel of 16 bits.
export function wavOf(blocks, rate) {
  const samples = blocks.reduce((sum, block) => sum + block.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * samples));
  const word = (at, text) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // Integers.
  view.setUint16(22, 1, true); // Channels.
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, 2 * samples, true);
  let at = 44;
  for (const block of blocks)
    for (const sample of block) {
      view.setInt16(at, Math.max(-32768, Math.min(32767, Math.round(sample * 32768))), true);
      at += 2;
    }
  return new Blob([view.buffer], { type: "audio/wav" });
}

// Browsers give microphones to pages of TLS or localhost alone.
export function canRecord() {
  return navigator.mediaDevices?.getUserMedia !== undefined && window.AudioWorkletNode !== undefined;
}

export class Recorder {
  // Asks for the microphone; throws what the browser says if there is none, or it may not be used. `full()` is called
  // when it has recorded for as long as it may.
  async start(full) {
    this.stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    this.blocks = [];
    try {
      await this.open(full);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async open(full) {
    this.context = new AudioContext({ sampleRate: kRate });
    let source;
    try {
      source = this.context.createMediaStreamSource(this.stream);
    } catch {
      this.context.close();
      this.context = new AudioContext();
      source = this.context.createMediaStreamSource(this.stream);
    }
    await this.context.audioWorklet.addModule(new URL("./recorder_worklet.js", import.meta.url));
    const node = new AudioWorkletNode(this.context, "weir-recorder", {
      channelCount: 1,
      channelCountMode: "explicit",
    });
    let left = kSecondsMax * this.context.sampleRate;
    node.port.onmessage = ({ data }) => {
      if (left <= 0) return;
      this.blocks.push(data);
      left -= data.length;
      if (left <= 0) full();
    };
    source.connect(node);
    node.connect(this.context.destination); // Silence; what leads nowhere is not computed in every browser.
  }

  close() {
    for (const track of this.stream.getTracks()) track.stop();
    this.context?.close();
  }

  // What was recorded.
  stop() {
    const rate = this.context.sampleRate;
    this.close();
    return wavOf(this.blocks, rate);
  }
}
