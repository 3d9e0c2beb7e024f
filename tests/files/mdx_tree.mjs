// The trees of files of MDX as @mdx-js/mdx reads them, without their words:
// node mdx_tree.mjs FOLDER_WITH_NODE_MODULES FILE...
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [folder, ...files] = process.argv.slice(2)
const find = createRequire(pathToFileURL(`${folder}/`))
const { createProcessor } = await import(pathToFileURL(find.resolve('@mdx-js/mdx')))
const prose = new Set(['title', 'label', 'alt', 'description', 'caption', 'summary', 'placeholder', 'aria-label'])

function shape(node) {
  const { type, name, url, depth, ordered, children, attributes } = node
  const value = type === 'text' ? undefined : node.value
  const props = attributes?.map((one) => [one.name, prose.has(one.name) ? typeof one.value : one.value?.value ?? one.value])
  const inside = children?.filter((child) => child.type !== 'text').map(shape)
  return { type, name, url, depth, ordered, value, props, inside }
}

const trees = []
for (const file of files) {
  const processor = createProcessor({ format: 'mdx' })
  const value = (await readFile(file, 'utf8')).replace(/^---\n[\s\S]*?\n---\n/, '\n')
  const tree = processor.parse(value)
  await processor.run(tree) // what is no program of JavaScript is refused
  trees.push(shape(processor.parse(value)))
}
console.log(JSON.stringify(trees))
