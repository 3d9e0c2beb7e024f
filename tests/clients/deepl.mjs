// deepl-node against a server whose address is the first argument: what it gets, as one line of JSON.
import { createRequire } from 'node:module';

const require = createRequire(process.argv[2] + '/');
const deepl = require('deepl-node');
const client = new deepl.DeepLClient('any', { serverUrl: process.argv[3], maxRetries: 0 });
const texts = JSON.parse(process.argv[4]);

const many = await client.translateText(texts, 'en', 'fr');
const tagged = await client.translateText('<b>No.</b> <x id="0"></x>', null, 'fr', {
  tagHandling: 'xml',
  ignoreTags: ['x'],
});
const glossary = await client.createGlossary('node', 'en', 'fr', new deepl.GlossaryEntries({ entries: { State: 'Kanton' } }));
const withTerms = await client.translateText('The State.', 'en', 'fr', { glossary });
await client.deleteGlossary(glossary);
let refused = '';
try {
  await client.translateText('No.', null, 'de');
} catch (error) {
  refused = error.message;
}
console.log(JSON.stringify({
  texts: many.map((one) => one.text),
  detected: many[0].detectedSourceLang,
  tagged: tagged.text,
  withTerms: withTerms.text,
  sources: (await client.getSourceLanguages()).map((one) => one.code),
  limited: (await client.getUsage()).anyLimitReached(),
  refused,
}));
