// Where messages are written: a text that grows with its lines, images, sounds, and a button that sends or stops.

import * as store from "./store.js";
import { h, iconButton, notice, replace } from "./dom.js";
import { Recorder, canRecord } from "./recorder.js";
import { hears, sees } from "./server.js";

const kImageSide = 2048;
const kImagesMax = 8;
const kSoundsMax = 8;
const kSoundFileMax = 16 << 20;
const kTextFileMax = 256 << 10;

// Drawn anew: smaller, and without what a camera writes beside the picture.
async function smaller(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, kImageSide / Math.max(bitmap.width, bitmap.height));
  const canvas = h("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) =>
    canvas.toBlob(resolve, file.type === "image/png" ? "image/png" : "image/jpeg", 0.9),
  );
}

export class Composer {
  // `send(text, media)` is called with what was written; `stop()` while an answer comes; `editLast()` for Alt+Up.
  constructor({ send, stop, editLast }) {
    this.send = send;
    this.stop = stop;
    this.media = [];
    this.model = ""; // That is asked: whether it sees and hears.
    this.busy = false;
    this.text = h("textarea", {
      id: "message",
      rows: 1,
      placeholder: "Message",
      "aria-label": "Message",
      enterkeyhint: "send",
      oninput: () => {
        this.fit();
        this.keepDraft();
        this.update();
      },
      onkeydown: (event) => this.onKey(event, editLast),
      onpaste: (event) => this.onFiles(event.clipboardData?.files, event),
    });
    this.attached = h("div", { class: "attachments" });
    this.picker = h("input", {
      type: "file",
      hidden: true,
      multiple: true,
      onchange: () => {
        this.onFiles(this.picker.files);
        this.picker.value = "";
      },
    });
    this.attach = iconButton("clip", "Attach a file", () => this.picker.click());
    this.record = iconButton("microphone", "Record a sound", () => this.toggleRecorder());
    this.go = h("button", { type: "submit", class: "send" });
    this.element = h(
      "form",
      {
        class: "composer",
        "aria-label": "New message",
        onsubmit: (event) => {
          event.preventDefault();
          this.submit();
        },
        ondragover: (event) => event.preventDefault(),
        ondrop: (event) => this.onFiles(event.dataTransfer?.files, event),
      },
      this.attached,
      h("div", { class: "composer-row" }, this.picker, this.attach, this.record, this.text, this.go),
    );
    this.update();
  }

  open(chat) {
    this.chat = chat;
    this.text.value = sessionStorage.getItem(`weir-draft-${chat}`) ?? "";
    this.media = [];
    this.drawAttached();
    this.fit();
    this.update();
  }

  keepDraft() {
    if (this.text.value) sessionStorage.setItem(`weir-draft-${this.chat}`, this.text.value);
    else sessionStorage.removeItem(`weir-draft-${this.chat}`);
  }

  fit() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, innerHeight * 0.4)}px`;
  }

  setBusy(busy) {
    this.busy = busy;
    this.update();
  }

  update() {
    const empty = !this.text.value.trim() && this.media.length === 0;
    if (this.shown !== this.busy) {
      this.shown = this.busy;
      const made = iconButton(this.busy ? "stop" : "send", this.busy ? "Stop" : "Send");
      replace(this.go, made.firstChild);
      this.go.setAttribute("aria-label", this.busy ? "Stop" : "Send");
      this.go.title = this.busy ? "Stop (Esc)" : "Send (Enter)";
    }
    this.go.disabled = !this.busy && empty;
    const kinds = [sees(this.model) && "images", hears(this.model) && "sounds", "texts"].filter(Boolean);
    const others = kinds.slice(0, -1).join(", ");
    const label = others ? `Attach ${others} or texts` : "Attach texts; this model sees no images and hears no sounds";
    this.attach.title = label;
    this.attach.setAttribute("aria-label", label);
    this.picker.accept = [
      ...(sees(this.model) ? ["image/*"] : []),
      ...(hears(this.model) ? ["audio/*"] : []),
      "text/*,.md,.json,.csv,.log",
    ].join();
    this.record.hidden = !this.recorder && !(hears(this.model) && canRecord());
    const recording = this.recorder ? "Stop recording" : "Record a sound";
    this.record.title = recording;
    this.record.setAttribute("aria-label", recording);
    this.record.setAttribute("aria-pressed", String(this.recorder !== undefined));
  }

  async toggleRecorder() {
    if (this.starting) return;
    if (!this.recorder) {
      const recorder = new Recorder();
      this.starting = true;
      try {
        await recorder.start(() => this.recorder === recorder && this.toggleRecorder());
        this.recorder = recorder;
      } catch (error) {
        notice(`The microphone cannot be used: ${error.message}`);
      }
      this.starting = false;
      return this.update();
    }
    const blob = this.recorder.stop();
    this.recorder = undefined;
    await this.addSound(blob, "recording.wav");
    this.drawAttached();
    this.update();
    this.text.focus();
  }

  onKey(event, editLast) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!this.busy) this.submit();
    } else if (event.key === "ArrowUp" && event.altKey) {
      event.preventDefault();
      editLast();
    }
  }

  submit() {
    if (this.busy) return this.stop();
    const text = this.text.value.trim();
    if (!text && this.media.length === 0) return;
    const { media } = this;
    this.text.value = "";
    this.media = [];
    this.keepDraft();
    this.drawAttached();
    this.fit();
    this.update();
    this.send(text, media);
  }

  // What could not be sent.
  restore(text, media) {
    this.text.value = text;
    this.media = media;
    this.keepDraft();
    this.drawAttached();
    this.fit();
    this.update();
  }

  async onFiles(files, event) {
    if (!files || files.length === 0) return;
    event?.preventDefault();
    for (const file of files) await this.addFile(file);
    this.drawAttached();
    this.update();
    this.text.focus();
  }

  async addSound(blob, name) {
    if (!hears(this.model)) return notice("This model hears no sounds.");
    if (this.count("audio/") >= kSoundsMax) return notice(`A message takes ${kSoundsMax} sounds.`);
    if (blob.size > kSoundFileMax) return notice(`${name} is larger than 16 MiB.`);
    if (!(await store.hasRoomFor(blob.size)))
      return notice("This browser's storage is full; the sound was not added.");
    this.media.push({ blob, name, type: blob.type });
  }

  // Attached files whose type begins so.
  count(type) {
    return this.media.filter((each) => each.type.startsWith(type)).length;
  }

  async addFile(file) {
    if (file.type.startsWith("audio/")) return this.addSound(file, file.name);
    if (file.type.startsWith("image/")) {
      if (!sees(this.model)) return notice("This model sees no images.");
      if (this.count("image/") >= kImagesMax) return notice(`A message takes ${kImagesMax} images.`);
      const blob = await smaller(file).catch(() => null);
      if (!blob) return notice(`${file.name} is no image that this browser reads.`);
      if (!(await store.hasRoomFor(blob.size)))
        return notice("This browser's storage is full; the image was not added.");
      this.media.push({ blob, name: file.name, type: blob.type });
      return;
    }
    if (file.size > kTextFileMax) return notice(`${file.name} is larger than 256 KiB.`);
    const text = await file.text();
    if (text.includes("\0")) return notice(`${file.name} is no text.`);
    const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
    this.text.value += `${this.text.value ? "\n\n" : ""}${file.name}\n${fence}\n${text}\n${fence}\n`;
    this.keepDraft();
    this.fit();
  }

  drawAttached() {
    replace(
      this.attached,
      this.media.map((each) => {
        const url = URL.createObjectURL(each.blob);
        const revoke = () => URL.revokeObjectURL(url);
        const shown = each.type.startsWith("audio/")
          ? h("audio", { src: url, controls: true, "aria-label": each.name, oncanplaythrough: revoke })
          : h("img", { src: url, alt: each.name, onload: revoke });
        return h(
          "figure",
          null,
          shown,
          iconButton("close", `Remove ${each.name}`, () => {
            this.media = this.media.filter((other) => other !== each);
            this.drawAttached();
            this.update();
          }),
        );
      }),
    );
  }
}
