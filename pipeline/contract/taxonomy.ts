/** The categories of apps and their subcategories (CONTRACT 4.4). */

/** Category groups. */
export const CATEGORIES = ['coding', 'creative', 'productivity', 'entertainment'] as const
export type Category = (typeof CATEGORIES)[number]

/** The subcategories of each group; a subcategory belongs to exactly one. */
export const TAXONOMY = {
  coding: ['cli-agent', 'ide-extension', 'cloud-agent', 'programming-app', 'native-app-builder'],
  creative: ['creative-writing', 'video-gen', 'image-gen', 'audio-gen'],
  productivity: ['writing-assistant', 'general-chat', 'personal-agent', 'legal'],
  entertainment: ['roleplay', 'game'],
} as const satisfies Record<Category, readonly string[]>

export type Subcategory = (typeof TAXONOMY)[Category][number]

export const SUBCATEGORIES: readonly Subcategory[] = Object.values(TAXONOMY).flat()

export function subcategoriesOf(category: Category): readonly Subcategory[] {
  return TAXONOMY[category]
}
