// Hands what the microphone gives to the page, a block of samples at a time (recorder.js).

class Recorder extends AudioWorkletProcessor {
  process([channels]) {
    if (channels.length > 0) this.port.postMessage(channels[0].slice());
    return true;
  }
}

registerProcessor("weir-recorder", Recorder);
